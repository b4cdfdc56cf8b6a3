/** The issuer's keys: made when signing is on, published as long as anything they signed may be around (spec §9). */
import assert from 'node:assert/strict'
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openIssuer } from '../../../src/passport/signing/issuer.ts'
import { raw } from '../../support/passport/passport.ts'
import { startWorld } from '../../support/world.ts'

type Did = { verificationMethod?: object[]; assertionMethod: string[] }

describe('signing that is off', () => {
  it('makes no key, offers no list, and has an empty did:web document', async () => {
    const world = await startWorld()
    const did = JSON.parse((await raw(world.url, '/.well-known/did.json')).text) as Did
    assert.deepEqual([did.assertionMethod, did.verificationMethod], [[], undefined])
    assert.equal((await raw(world.url, '/api/status/suspension/1')).status, 404)
    await assert.rejects(stat(join(world.settings.DATA_DIR, 'keys', 'issuer.jwks.json')), { code: 'ENOENT' })
    await world.end()
  })

  it('still publishes keys that once signed, and a file that is no key file stops the start with one sentence', async () => {
    const world = await startWorld({ env: { PASSPORT_SIGNING: 'on' } })
    const folder = join(world.settings.DATA_DIR, 'keys')
    const [both, other] = await Promise.all([
      openIssuer({ folder, signing: false }),
      openIssuer({ folder, signing: true }),
    ])
    assert.equal(both.keys().length, 2)
    assert.deepEqual(
      other.keys().map(({ publicJwk }) => publicJwk),
      both.keys().map(({ publicJwk }) => publicJwk),
    )
    await writeFile(join(folder, 'issuer.jwks.json'), '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}')
    await assert.rejects(openIssuer({ folder, signing: true }), (error: Error) => !error.message.includes('c2VjcmV0'))
    await world.end()
  })
})
