/** Awkward URLs below /api/asset/ over a raw socket, where no client cleans them up (spec §4.1, §8). */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { startWorld, type World } from '../../support/world.ts'

const invalid =
  '{"version":"1","error":{"code":"INVALID_TOKEN_ID","message":"The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as 42."}}'

describe('GET /api/asset/ over a raw socket', () => {
  let world: World
  before(async () => {
    world = await startWorld()
    for (let id = 0; id < 2; id += 1) await world.mint()
  })
  after(() => world.end())

  for (const [name, segment] of [
    ['broken percent-encoding', '%zz'],
    ['a null byte', '%00'],
    ['a line break behind the digits', '2%0a'],
    ['a sign', '+2'],
    ['79 nines', '9'.repeat(79)],
    ['5000 nines', '9'.repeat(5_000)],
    ['2^256', String(2n ** 256n)],
    ['a minus', '-2'],
    ['hex', '0x2'],
    ['an encoded slash', '2%2F1'],
    ['digits encoded twice', '%2532'],
    ['a space', '%202'],
    ['a decimal point', '2.0'],
    ['digits of another script', '%D9%A2'],
    ['nothing', ''],
    ['a dot segment', '..'],
  ] as const)
    it(`answers 400 with the fixed body for ${name}`, async () => {
      const { status, body } = await raw(`/api/asset/${segment}`)
      assert.deepEqual([status, body], [400, invalid])
    })

  for (const [segment, id] of [
    ['%32', '2'],
    ['00002', '2'],
    [`${'0'.repeat(77)}2`, '2'],
    ['2?utm=1', '2'],
    ['2?', '2'],
  ] as const)
    it(`reads ${segment.slice(0, 20)} as ${id}`, async () => {
      const { status, body } = await raw(`/api/asset/${segment}`)
      assert.deepEqual([status, (JSON.parse(body) as { token_id: string }).token_id], [200, id])
    })

  it('answers 404 for a slash behind an id, without a redirect', async () => {
    const { status, head } = await raw('/api/asset/2/')
    assert.equal(status, 404)
    assert.doesNotMatch(head, /^location:/im)
  })

  it('answers 404 ASSET_NOT_FOUND for 2^256-1', async () => {
    const { status, body } = await raw(`/api/asset/${2n ** 256n - 1n}`)
    assert.deepEqual([status, /ASSET_NOT_FOUND/.test(body)], [404, true])
  })

  for (const [name, target] of [
    ['a raw space in the target', '/api/asset/2 3'],
    ['a raw byte above ASCII', '/api/asset/\u00e9'],
    ['no target', ''],
  ] as const)
    it(`answers JSON, and nothing of the machine, for ${name}`, async () => {
      const { status, body, head } = await raw(target)
      assert.equal(status, 400)
      assert.match(head, /content-type: application\/json/i)
      assert.match(head, /x-request-id: \S+/i)
      assert.ok(JSON.parse(body))
      assert.doesNotMatch(body, /\bat \S+:\d|node:|Error/)
    })

  function raw(target: string): Promise<{ status: number; head: string; body: string }> {
    return new Promise((resolve, reject) => {
      const { port } = new URL(world.url)
      const socket = connect(Number(port), '127.0.0.1', () =>
        socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`, 'latin1')),
      )
      const chunks: Buffer[] = []
      socket.setTimeout(120_000, () => socket.destroy(new Error('no answer in time')))
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('error', reject)
      socket.on('close', () => {
        const [head = '', ...rest] = Buffer.concat(chunks).toString().split('\r\n\r\n')
        resolve({ status: Number(head.split(' ')[1]), head, body: rest.join('\r\n\r\n') })
      })
    })
  }
})
