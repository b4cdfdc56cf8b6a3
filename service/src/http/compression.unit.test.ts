import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { encodingFor, responseCompressor } from './compression.ts'

const page = `<p>${'verdict '.repeat(1_000)}</p>`
const answer = (headers: Record<string, string> = {}, body: string | null = page, status = 200) =>
  new Response(body, { status, headers: { 'Content-Type': 'text/html; charset=utf-8', ...headers } })

describe('encodingFor', () => {
  it('chooses brotli before gzip, and neither where the client does not name it', () => {
    for (const [header, encoding] of [
      ['gzip, deflate, br', 'br'],
      ['br;q=0, gzip;q=0.5', 'gzip'],
      ['*', 'identity'],
      ['', 'identity'],
      [undefined, 'identity'],
    ] as const)
      assert.equal(encodingFor(header), encoding, header)
  })
})

describe('responseCompressor', () => {
  const compressed = responseCompressor()

  it('compresses a text, says so, and weakens its entity tag', async () => {
    for (const [accept, decode] of [
      ['gzip', gunzipSync],
      ['br', brotliDecompressSync],
    ] as const) {
      const response = await compressed(answer({ ETag: '"a"', 'Content-Length': '8007', Vary: 'Accept' }), accept)
      const bytes = new Uint8Array(await response.arrayBuffer())
      assert.equal(decode(bytes).toString(), page)
      assert.ok(bytes.length < 200)
      const named = ['content-encoding', 'content-length', 'etag', 'vary'].map((name) => response.headers.get(name))
      assert.deepEqual(named, [accept, String(bytes.length), 'W/"a"', 'Accept, Accept-Encoding'])
    }
  })

  it('gives a 304 the tag and the Vary of the compressed answer that it confirms', async () => {
    const confirmed = (etag: string, accept?: string) =>
      compressed(new Response(null, { status: 304, headers: { ETag: etag, Vary: 'Accept' } }), accept)
    for (const [etag, accept, expected] of [
      ['"a"', 'gzip', 'W/"a"'],
      ['W/"a"', 'br', 'W/"a"'],
      ['"a"', undefined, '"a"'],
    ] as const) {
      const { status, headers } = await confirmed(etag, accept)
      assert.deepEqual(
        [status, headers.get('etag'), headers.get('vary'), headers.get('content-encoding')],
        [304, expected, 'Accept, Accept-Encoding', null],
      )
    }
  })

  it('keeps the result of what is public, by its bytes', async () => {
    const headers = { 'Cache-Control': 'public, max-age=60', ETag: '"same"' }
    const [one, other] = [page, `${page}!`]
    const texts = await Promise.all(
      [one, other, one].map(async (text) => {
        const response = await compressed(answer(headers, text), 'gzip')
        return gunzipSync(new Uint8Array(await response.arrayBuffer())).toString()
      }),
    )
    assert.deepEqual(texts, [one, other, one])
  })

  it('leaves alone what is short, long, a picture, an error, compressed before, or not wanted', async () => {
    for (const [response, accept] of [
      [answer({}, 'short'), 'gzip'],
      [answer({}, 'x'.repeat(1_000_001)), 'gzip'],
      [answer({ 'Content-Type': 'image/avif' }), 'gzip'],
      [answer({}, page, 404), 'gzip'],
      [answer({}, null), 'gzip'],
      [answer(), 'deflate'],
      [answer(), undefined],
    ] as const)
      assert.equal((await compressed(response, accept)).headers.get('content-encoding'), null)
    assert.equal((await compressed(answer({ 'Content-Encoding': 'br' }), 'gzip')).headers.get('content-encoding'), 'br')
    const own = new Response(null, { status: 304, headers: { ETag: '"a-br"', Vary: 'Accept-Encoding' } })
    const { headers } = await compressed(own, 'br')
    assert.deepEqual([headers.get('etag'), headers.get('vary')], ['"a-br"', 'Accept-Encoding'])
  })

  it('sends plain bytes when too many are compressed at once', async () => {
    const many = await Promise.all(
      Array.from({ length: 30 }, (_one, index) => compressed(answer({}, `${index}${page}`), 'br')),
    )
    const codings = many.map(({ headers }) => headers.get('content-encoding'))
    assert.ok(codings.includes('br') && codings.includes(null))
    for (const [index, response] of many.entries())
      if (response.headers.get('content-encoding') === null) assert.equal(await response.text(), `${index}${page}`)
  })
})
