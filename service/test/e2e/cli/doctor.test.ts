/**
 * `touchstone tag doctor` names everything that decides whether a link verifies now; its exit code is 0 only when it would (spec §4.4).
 * `touchstone doctor` does so for the service.
 */
import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { toHex } from '../../../src/tap/bytes.ts'
import { importedBatch, type BatchKeyRecord } from '../../../src/tap/keys/batch.ts'
import { diagnoseSettings } from '../../../src/cli/doctor/doctor.ts'
import { startFaultRpc } from '../../support/fault-rpc.ts'
import { testFolder } from '../../support/folder.ts'
import { serve } from '../../support/http.ts'
import { assertionsOf, commandsOf, touchstone } from '../../support/processes/cli.ts'
import { createTagHash } from '../../../src/tap/tag-hash.ts'
import { bindTagTo } from '../../support/tap/bound.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const item = '01/09520001000003/21/SW-0001'

/** TAG_PEPPER was replaced: some tags are bound under this one. */
const formerPepper = '71'.repeat(32)
const formerTagHash = createTagHash({ scheme: 'hmac', pepper: Buffer.from(formerPepper, 'hex') })

const world = useOpened(async () => {
  const opened = await startWorld({ env: { TAG_PEPPER_PREVIOUS: formerPepper } })
  for (const batch of ['watches', 'renewed --epoch 1']) await commandsOf(opened)(`tag batch create ${batch} --demo`)
  return opened
})
const run = commandsOf(world)
const { ok, refused } = assertionsOf(run)

type Shown = { ok: boolean; findings: { code: string; severity: string }[]; facts: Record<string, string | number> }

/** Returns the codes of the faults, then those of the notes in brackets, and what else the doctor shows. */
async function doctor(url: string) {
  const { exit, out } = await run('tag doctor', url, '--json')
  const { ok, findings, facts } = JSON.parse(out) as Shown
  assert.equal(exit, ok ? 0 : 1)
  assert.equal(
    ok,
    findings.every(({ severity }) => severity === 'note'),
  )
  const codes = findings.map(({ code, severity }) => (severity === 'note' ? `(${code})` : code))
  const text = (await run('tag doctor', url)).out
  for (const { code } of findings) assert.match(text, new RegExp(`\\[${code}\\]$`, 'm'))
  assert.equal(text.startsWith('Nothing is wrong with this address'), ok)
  return { codes, facts, text }
}

/** Returns whether GET /api/verify answers `verified: true` for the link, which uses it up. */
async function verifies(url: string): Promise<boolean> {
  const { search } = new URL(url)
  const answer = await world.get(`/api/verify${search}`)
  return ((await answer.json()) as { verified: boolean }).verified
}

const recordOf = (id: string): BatchKeyRecord => world.components.tagKeys.record(id) ?? assert.fail(id)

/** A tag of the batch that is bound to a new asset, and its links. */
async function boundTag(id = 'watches', { uid = newUid(), path = 'api/verify' } = {}) {
  const tokenId = await world.mint({ name: 'Harrow 38' })
  await ok(`asset bind ${tokenId} --uid ${toHex(uid)} --batch ${id}`)
  return { ...(await linksOf(id, { uid, path })), tokenId }
}

async function linksOf(id: string, { uid = newUid(), path = 'api/verify', counter = 0 } = {}) {
  const tag = await testTag(recordOf(id), { uid, counter })
  const next = () => {
    const { picc, cmac } = tag.next()
    return `${world.url}/${path}?picc=${picc}&cmac=${cmac}`
  }
  return { uid, next }
}

describe('touchstone tag doctor', () => {
  it('finds nothing wrong with an unused link of a bound tag, and uses nothing up', async () => {
    const { next, uid, tokenId } = await boundTag()
    const url = next()
    for (const _again of [1, 2]) {
      const { codes, facts } = await doctor(url)
      assert.deepEqual(codes, [])
      const { uid: shown, counter, batch, status, epoch, derivation, bound, state, registered } = facts
      assert.deepEqual(
        { shown, counter, batch, status, epoch, derivation, bound, state, registered, last: facts['last counter'] },
        {
          shown: toHex(uid),
          counter: 1,
          batch: 'watches',
          status: 'active',
          epoch: 0,
          derivation: 'an10922',
          bound: `asset ${tokenId}`,
          state: 'BOUND',
          registered: `asset ${tokenId}`,
          last: 0,
        },
      )
    }
    assert.equal(await verifies(url), true)
  })

  it('names a used link with its time, while it passes again and afterwards', async () => {
    const { next } = await boundTag()
    const url = next()
    assert.equal(await verifies(url), true)
    const used = await doctor(url)
    assert.deepEqual(used.codes, ['(used)'])
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`
    assert.match(used.text, new RegExp(`Used at ${time}, last counter 1; the same link passes again until ${time}`))
    await world.components.database.query(`UPDATE tap SET first_seen = first_seen - interval '1 hour'`)
    const replayed = await doctor(url)
    assert.deepEqual(replayed.codes, ['replayed'])
    assert.match(replayed.text, new RegExp(`^Used at ${time}, last counter 1: a link verifies once`))
    assert.equal(await verifies(url), false)
  })

  it('names a link that was passed over by a later one', async () => {
    const { next } = await boundTag()
    const [early, late] = [next(), next()]
    assert.equal(await verifies(late), true)
    const { codes, text } = await doctor(early)
    assert.deepEqual(codes, ['replayed'])
    assert.match(text, /^Counter 1 is below the last counter 2/)
    assert.equal(await verifies(early), false)
  })

  it('names a counter that came with other bytes, and a former epoch of the chip', async () => {
    const { next, uid } = await boundTag()
    assert.equal(await verifies(next()), true)
    const again = await linksOf('watches', { uid })
    const copied = again.next()
    assert.deepEqual((await doctor(copied)).codes, ['other_bytes'])
    assert.equal(await verifies(copied), false)
    const unused = next()
    await world.components.tags.importTag({ uid, epoch: 1, batchId: 'renewed' })
    const { codes, text } = await doctor(unused)
    assert.ok(codes.includes('old_epoch'), codes.join())
    assert.match(text, /registered again under epoch 1, batch renewed/)
    assert.equal(await verifies(unused), false)
  })

  it('names a link that leads elsewhere: host, path, item, repeated parameters', async () => {
    const { next } = await boundTag()
    const url = next()
    const at = (change: (url: URL) => void) => {
      const changed = new URL(url)
      change(changed)
      return doctor(String(changed))
    }
    const elsewhere = await at((changed) => (changed.host = 'other.example'))
    assert.deepEqual(elsewhere.codes, ['wrong_host'])
    assert.match(elsewhere.text, /^The link opens other\.example:\d+, and this service is 127\.0\.0\.1:\d+/)
    assert.deepEqual((await at((changed) => (changed.pathname = '/t'))).codes, ['unknown_path'])
    assert.deepEqual((await at((changed) => (changed.pathname = `/${item}`))).codes, ['wrong_item'])
    assert.deepEqual((await at((changed) => (changed.pathname = '/api/dpp/token/999'))).codes, ['wrong_item'])
    const [long, repeated] = [`&x=${'y'.repeat(3_000)}`, `&picc=${'0'.repeat(32)}`]
    for (const [other, code] of [
      [`${url}${repeated}`, 'repeated_parameter'],
      [`${url}${long}${long}${repeated}`, 'not_an_address'],
      [url.replace('?', '??'), 'parameter_names'],
    ] as const) {
      assert.deepEqual((await doctor(other)).codes, [code])
      assert.equal(await verifies(other), false)
    }
    assert.deepEqual((await doctor(`${url}${long}`)).codes, [])
    assert.equal(await verifies(`${url}${long}`), true)
  })

  it('takes the Digital Link of the item that the tag is bound to', async () => {
    const { next, tokenId, uid } = await boundTag('watches', { path: item })
    const named = { tokenId, gtin: '09520001000003', serial: 'SW-0001' }
    await world.components.tags.importTag({ uid, epoch: 0, batchId: 'watches', ...named })
    const { codes, facts } = await doctor(next())
    assert.deepEqual(codes, [])
    assert.equal(facts['item'], '09520001000003/SW-0001')
  })

  it('names a tag that is unknown, and one that is not bound', async () => {
    const unknown = (await linksOf('watches')).next()
    assert.deepEqual((await doctor(unknown)).codes, ['(unregistered)', 'unbound'])
    assert.equal(await verifies(unknown), false)
    const { uid, next } = await linksOf('watches', { counter: 3 })
    await world.components.tags.importTag({ uid, epoch: 0, batchId: 'watches', baselineCounter: 3 })
    assert.deepEqual((await doctor(next())).codes, ['unbound'])
    const made = (await linksOf('watches', { uid, counter: 2 })).next()
    const { codes, text } = await doctor(made)
    assert.deepEqual(codes, ['replayed', 'unbound'])
    assert.match(text, /^Counter 3 was used up when the tag was registered/)
  })

  it('takes a bound tag that was never registered, and says so', async () => {
    const { uid, next } = await linksOf('watches')
    const { tokenId } = await bindTagTo(world, uid)
    const url = next()
    assert.deepEqual((await doctor(url)).codes, ['(unregistered)'])
    assert.equal(await verifies(url), true)
    await ok(`asset flag ${tokenId} --reason stolen`)
    const flagged = next()
    const { codes, facts } = await doctor(flagged)
    assert.deepEqual(codes, ['(unregistered)', '(flagged)'])
    assert.equal(facts['state'], 'FLAGGED')
    assert.equal(await verifies(flagged), true)
  })

  it('names the batch whose keys a tag that was never registered was tapped with first', async () => {
    const { uid, next } = await linksOf('watches', { counter: 6 })
    await bindTagTo(world, uid)
    assert.equal(await verifies(next()), true)
    for (const id of ['renewed', 'leaked']) {
      if (id === 'leaked') await ok(`tag batch create ${id} --demo`)
      const url = (await linksOf(id, { uid, counter: 20 })).next()
      const { codes, text } = await doctor(url)
      assert.deepEqual(codes, ['(unregistered)', 'other_batch'])
      assert.match(text, /^The tag was first tapped with the keys of batch watches, so that/m)
      assert.equal(await verifies(url), false)
    }
    assert.equal(await verifies(next()), true)

    const claimed = await linksOf('leaked', { counter: 2 })
    await bindTagTo(world, claimed.uid)
    assert.equal(await verifies(claimed.next()), true)
    await ok('tag batch revoke leaked')
    const passed = (await linksOf('watches', { uid: claimed.uid, counter: 1 })).next()
    assert.deepEqual((await doctor(passed)).codes, ['(unregistered)'])
    assert.equal(await verifies(passed), true)
  })

  it('finds a tag that is bound under the former pepper, as a tap does, and binds it to no other asset', async () => {
    const { uid, next } = await linksOf('watches')
    const [tokenId, other] = [await world.mint(), await world.mint()]
    await world.write({ kind: 'bindTag', tokenId, tagHash: formerTagHash(uid) })
    const url = next()
    const { codes, facts } = await doctor(url)
    assert.deepEqual([codes, facts['bound']], [['(unregistered)'], `asset ${tokenId}`])
    assert.equal(await verifies(url), true)

    const bind = await refused(`asset bind ${other} --uid ${toHex(uid)} --batch watches`)
    assert.equal(bind, `This tag is bound to asset ${tokenId} on chain.`)
    await writeFile(join(world.settings.DATA_DIR, 'former.csv'), `uid,batch\n${toHex(uid)},watches\n`)
    const imported = await run('tag import former.csv --mint --bind --json')
    const { done, mint, bind: bindings } = JSON.parse(imported.out) as Record<string, number>
    assert.deepEqual([done, mint, bindings], [1, 0, 0])
    assert.equal((await world.components.tags.tagOfUid(uid))?.tokenId, tokenId)

    const shown = async () => {
      const { exit, out } = await run('tag commitments --json')
      return { exit, report: JSON.parse(out) as { previousPepperNeeded: boolean; list: object[]; conflicts: object[] } }
    }
    const before = await shown()
    assert.deepEqual([before.exit, before.report.previousPepperNeeded], [0, true])
    assert.deepEqual(before.report.list, [{ uid: toHex(uid), tokenId: String(tokenId), state: 'BOUND' }])
    assert.match(await ok('tag commitments'), /^Keep TAG_PEPPER_PREVIOUS until 1 of these items are recycled/m)
    await ok(`asset recycle ${tokenId}`)
    assert.equal((await shown()).report.previousPepperNeeded, false)
    assert.match(await ok('tag commitments'), /^TAG_PEPPER_PREVIOUS can be removed/m)

    const tagHash = world.components.tagHash?.(uid) ?? assert.fail()
    await world.write({ kind: 'bindTag', tokenId: other, tagHash })
    const twice = next()
    assert.deepEqual((await doctor(twice)).codes, ['chain_unavailable'])
    assert.equal((await world.get(`/api/verify${new URL(twice).search}`)).status, 502)
    const { exit, report } = await shown()
    const conflict = { uid: toHex(uid), tokenId: String(other), formerTokenId: String(tokenId) }
    assert.deepEqual([exit, report.conflicts, report.list], [1, [conflict], []])
    assert.match((await run('tag commitments')).out, /: its taps are 502\n[^]*\nFind out which asset carries each/)
  })

  it('ends when it is interrupted while it derives the keys of many UIDs', async () => {
    const { next } = await boundTag()
    const interrupted = commandsOf(world, {}, { signal: AbortSignal.abort() })
    const { exit, out, err } = await interrupted('tag doctor', next(), '--uid', toHex(newUid()))
    assert.deepEqual([exit, out, err], [1, '', 'touchstone: The command was interrupted. Nothing was changed.'])
  })

  it('names strange keys and a revoked batch', async () => {
    const strange = importedBatch({
      id: 'strange',
      demo: true,
      scheme: { derivation: 'tagit-sdm' },
      master: Uint8Array.from({ length: 16 }, (_, index) => index * 7 + 3),
    })
    const { picc, cmac } = (await testTag(strange ?? assert.fail())).next()
    assert.deepEqual((await doctor(`${world.url}/api/verify?picc=${picc}&cmac=${cmac}`)).codes, ['unknown_keys'])
    const { next } = await boundTag('watches')
    await ok('tag batch revoke watches')
    const revoked = next()
    assert.deepEqual((await doctor(revoked)).codes, ['revoked_batch'])
    assert.equal(await verifies(revoked), false)
  })
})

describe('touchstone doctor', () => {
  const wrongOnes = async (env: Readonly<Record<string, string>>) => {
    const findings = await diagnoseSettings({ ...world.settings, ...env })
    for (const { state, remedy } of findings) assert.equal(remedy === undefined, state === 'ok')
    const shown = JSON.stringify(findings)
    for (const secret of [world.settings.TAG_KEK, world.settings.TAG_PEPPER, 'secret-in-url'])
      assert.ok(!shown.includes(secret ?? ''), shown)
    return findings.filter(({ state }) => state === 'wrong').map(({ area, what }) => `${area}: ${what}`)
  }

  it('finds nothing wrong with the settings of a service that runs', async () => {
    assert.deepEqual(await wrongOnes({}), [])
    const findings = await diagnoseSettings(world.settings)
    assert.match(JSON.stringify(findings), /has the code of CHAIN_CONTRACT.*TAG_KEK opens the keys of \d batches/)
  })

  it('names each fault, with a remedy and without a secret', async () => {
    const taken = new URL(world.url).port
    const closed = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.write('-WRONGPASS invalid username-password pair or user is disabled.\r\n'))
    }).listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const redis = closed.address() as AddressInfo
    const themes = testFolder()
    await writeFile(join(themes, 'groesse.svg'), '<svg/>')
    await writeFile(join(themes, 'groesse.json'), '{"name":"Größe"}', 'latin1')
    const faults: readonly (readonly [Record<string, string>, RegExp])[] = [
      [{ TAG_KEK: 'x' }, /^settings: TAG_KEK must be/],
      [{ PAYMENT_PAY_TO: `0x${'12'.repeat(20)}` }, /^settings: PAYMENT_PAY_TO needs a facilitator/],
      [{ TAG_KEK: `${'6b'.repeat(31)}09` }, /^keys: The key file cannot be opened/],
      [{ VERIFICATION_PORT: taken }, new RegExp(`^ports: VERIFICATION_PORT: ${taken} .*EADDRINUSE`)],
      [{ CHAIN_RPC_URLS: '' }, /^chain: No provider is set/],
      [{ CHAIN_RPC_URLS: 'http://127.0.0.1:1/secret-in-url' }, /^chain: localhost:1 does not answer/],
      [{ CHAIN_CONTRACT: `0x${'12'.repeat(20)}` }, /^chain: CHAIN_CONTRACT has no code/],
      [{ CHAIN_CODE_HASH: `0x${'34'.repeat(32)}` }, /^chain: The code .* is not that of CHAIN_CODE_HASH/],
      [{ DATABASE_URL: 'postgres://user:secret-in-url@127.0.0.1:1/x' }, /^database: PostgreSQL cannot be reached/],
      [{ REDIS_URL: 'redis://:secret-in-url@127.0.0.1:1' }, /^redis: Nothing accepts connections/],
      [{ REDIS_URL: `redis://:secret-in-url@127.0.0.1:${redis.port}` }, /^redis: .* cannot be used: WRONGPASS/],
      [{ DATA_DIR: '/dev/null', TAG_KEK: '' }, /^folder: .* is no folder/],
      [{ DATA_DIR: '/proc/touchstone', TAG_KEK: '' }, /^folder: .* does not exist, and \/proc is not writable/],
      [{ THEME_DIR: '/nope' }, /^settings: THEME_DIR: there is no folder \/nope/],
      [{ THEME_DIR: themes }, /^settings: THEME_DIR: .*groesse\.json: it is not UTF-8: save the file as UTF-8/],
      [{ GRAPHQL_PERSISTED: '/nope.json' }, /^settings: \/nope\.json cannot be read/],
    ]
    for (const [env, what] of faults) {
      const found = await wrongOnes(env)
      assert.ok(found.length === 1 && what.test(found[0] ?? ''), `${JSON.stringify(env)}: ${found.join(' | ')}`)
    }
    closed.close()
  })

  it('warns of a collector of traces that is away', async () => {
    const found = async (endpoint: string) => {
      const all = await diagnoseSettings({ ...world.settings, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
      return all.filter(({ area }) => area === 'traces').map(({ state }) => state)
    }
    assert.deepEqual(await found('http://127.0.0.1:1'), ['warning'])
    assert.deepEqual(await found(world.chainUrl), ['ok'])
    assert.deepEqual(await found(''), [])
  })

  it('names a variable that was meant to be a setting, also beside a wrong one, and not its text', async () => {
    for (const more of [{}, { TAG_KEK: 'x' }]) {
      const all = await diagnoseSettings({ ...world.settings, TAP_CHALENGE: 'secret-in-url', ...more })
      assert.deepEqual(
        all.filter(({ state }) => state === 'warning').filter(({ area }) => area === 'settings'),
        [
          {
            area: 'settings',
            state: 'warning',
            what: 'TAP_CHALENGE is no setting, and has no effect.',
            remedy: 'Write TAP_CHALLENGE, or remove it.',
          },
        ],
      )
    }
  })

  it('warns of the folder of something else', async () => {
    const folder = testFolder()
    await writeFile(join(folder, 'index.html'), '')
    const of = async (env: object) =>
      (await diagnoseSettings({ ...world.settings, DATA_DIR: folder, ...env }))
        .filter(({ area, state }) => area === 'folder' && state !== 'ok')
        .map(({ state, what }) => `${state}: ${what.replace(folder, '')}`)
    assert.deepEqual(await of({ DATABASE_URL: '' }), ['wrong:  is the folder of something else: it has index.html.'])
    assert.deepEqual(await of({ DATABASE_URL: 'postgres://127.0.0.1:1/none' }), [
      'warning:  is the folder of something else: it has index.html.',
    ])
  })

  it('warns of one provider, however often it is named, and of what it decides in proof trust', async () => {
    const warned = async (rpcUrls: string, env: Readonly<Record<string, string>> = {}) => {
      const all = await diagnoseSettings({ ...world.settings, CHAIN_RPC_URLS: rpcUrls, ...env })
      return all.filter(({ area, state }) => area === 'chain' && state === 'warning').map(({ what }) => what)
    }
    const { chainUrl } = world
    const twice = `${chainUrl},${chainUrl}/?another=key`
    const proof = { CHAIN_TRUST: 'proof', CHAIN_INTERFACE: 'registry', CHAIN_CODE_HASH: `0x${'34'.repeat(32)}` }
    for (const named of [chainUrl, twice]) {
      assert.deepEqual(await warned(named), ['There is one provider only.'])
      assert.deepEqual(await warned(named, proof), ['There is one provider only. It decides which blocks there are.'])
    }
    const other = await startFaultRpc({ target: chainUrl })
    assert.deepEqual(await warned(`${chainUrl},${other.url}`, proof), [])
    await other.close()
  })

  it('notices a key file that others can read, and a provider of another chain', async () => {
    const path = join(world.settings.DATA_DIR, 'keys', 'tag-keys.json')
    await chmod(path, 0o644)
    const [open] = (await diagnoseSettings(world.settings)).filter(
      ({ area, state }) => area === 'folder' && state !== 'ok',
    )
    await chmod(path, 0o600)
    assert.match(`${open?.what} ${open?.remedy}`, /Other users can read .*tag-keys\.json.* chmod /)
    const other = await serve((_, response) => response.end('{"jsonrpc":"2.0","id":1,"result":"0x1"}'))
    assert.deepEqual(await wrongOnes({ CHAIN_RPC_URLS: other.url }), [
      `chain: localhost:${new URL(other.url).port} serves the chain 1, not 84532.`,
    ])
    await other.close()
  })

  it('is a command whose exit code says whether something is wrong', async () => {
    const { ended } = touchstone(['doctor', '--json'], { ...world.settings, CHAIN_RPC_URLS: '' })
    const { exit, out } = await ended
    assert.equal(exit, 1)
    const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: { area: string; remedy?: string }[] }
    assert.equal(ok, false)
    assert.ok(findings.some(({ area, remedy }) => area === 'chain' && remedy?.includes('CHAIN_RPC_URLS')))
    assert.equal((await touchstone(['doctor'], world.settings).ended).exit, 0)
  })
})
