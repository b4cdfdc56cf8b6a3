/** Content codings of responses (RFC 9110 §8.4): gzip and brotli, bounded in size and in how many are made at once. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'

export type Encoding = 'br' | 'gzip' | 'identity'

/** Returns the best encoding that an `Accept-Encoding` header names (RFC 9110 §12.5.3). Weights other than 0 are not compared. */
export function encodingFor(acceptEncoding: string | string[] | undefined): Encoding {
  const named = String(acceptEncoding ?? '')
    .slice(0, 500)
    .toLowerCase()
    .split(',')
    .filter((part) => !/;\s*q=0(?:\.0*)?\s*$/.test(part))
    .map((part) => part.split(';', 1)[0]?.trim())
  return (['br', 'gzip'] as const).find((encoding) => named.includes(encoding)) ?? 'identity'
}

/** Returns a function that compresses these bytes at its first call for an encoding, and keeps the result. */
export function compressedOnce(plain: Buffer): (encoding: Encoding) => Promise<Buffer> {
  const known = new Map<Encoding, Promise<Buffer>>([['identity', Promise.resolve(plain)]])
  return (encoding) => {
    const bytes = known.get(encoding) ?? compress(plain, encoding, 'small')
    known.set(encoding, bytes)
    return bytes
  }
}

/** `small` takes some milliseconds for a file, `quick` a tenth of them. */
type Effort = 'small' | 'quick'

/** Level 9 of brotli is within a few percent of 11, which takes over a second. */
const levels = { small: { br: 9, gzip: 9 }, quick: { br: 4, gzip: 5 } } as const

async function compress(plain: Uint8Array, encoding: Encoding, effort: Effort): Promise<Buffer> {
  if (encoding === 'gzip') return promisify(gzip)(plain, { level: levels[effort].gzip })
  return promisify(brotliCompress)(plain, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: levels[effort].br,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    },
  })
}

/** Shorter bodies do not become fewer packets. */
const minBytes = 1_024
const maxBytes = 1_000_000
/** Compressions at once; the next response is sent as it is. */
const mostAtOnce = 8

const compressible = /^(?:text\/|image\/svg\+xml|application\/(?:[\w.-]+\+)?json\b)/

export type CompressResponse = (response: Response, acceptEncoding: string | undefined) => Promise<Response>

/**
 * Makes the function that compresses responses. Results of public, cacheable responses are kept by the hash of their bytes, in at most
 * 8 MB. An entity tag becomes weak, because the bytes are others. So does that of a 304: a strong one confirms no stored answer
 * with a weak one (RFC 9111 §4.3.4).
 */
export function responseCompressor(): CompressResponse {
  const kept = new LRUCache<string, Buffer>({ maxSize: 8_000_000, sizeCalculation: (bytes) => bytes.length || 1 })
  let running = 0

  async function bytesOf(plain: Uint8Array, encoding: Encoding, isShared: boolean): Promise<Buffer | null> {
    const key = isShared ? `${encoding} ${createHash('sha256').update(plain).digest('base64')}` : ''
    const known = isShared ? kept.get(key) : undefined
    if (known !== undefined) return known
    if (running >= mostAtOnce) return null
    running += 1
    try {
      const bytes = await compress(plain, encoding, isShared ? 'small' : 'quick')
      if (isShared) kept.set(key, bytes)
      return bytes
    } finally {
      running -= 1
    }
  }

  return async (response, acceptEncoding) => {
    const { status, headers } = response
    const isText = status === 200 && compressible.test(headers.get('content-type') ?? '')
    const isEncoded = headers.has('content-encoding') || /accept-encoding/i.test(headers.get('vary') ?? '')
    if (isEncoded || !(isText || status === 304)) return response
    headers.append('Vary', 'Accept-Encoding')
    const encoding = encodingFor(acceptEncoding)
    if (encoding === 'identity') return response
    if (status === 304) weaken(headers)
    if (response.body === null) return response
    const plain = new Uint8Array(await response.arrayBuffer())
    const isShared = /^public\b/.test(headers.get('cache-control') ?? '')
    const fits = plain.length >= minBytes && plain.length <= maxBytes
    const bytes = fits ? await bytesOf(plain, encoding, isShared) : null
    if (bytes === null) return new Response(plain, { status, headers })
    weaken(headers)
    headers.set('Content-Encoding', encoding)
    headers.set('Content-Length', String(bytes.length))
    return new Response(new Uint8Array(bytes), { status, headers })
  }
}

function weaken(headers: Headers): void {
  const etag = headers.get('etag')
  if (etag !== null && !etag.startsWith('W/')) headers.set('ETag', `W/${etag}`)
}
