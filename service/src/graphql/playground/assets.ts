/**
 * The files of the playground (spec §4.9): GraphiQL and React as their packages publish them for browsers, graphql-ws, and our own page.
 * GraphiQL's bundle is complete, so the `overrides` of package.json keep its hundred dependencies out of `node_modules`; only React
 * stands beside it.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type Encoding = 'br' | 'gzip' | 'identity'
type PlaygroundAsset = {
  /** The media type. */
  readonly type: string
  /** Compresses at the first call and keeps the result. */
  readonly bytes: (encoding: Encoding) => Promise<Buffer>
}
export type PlaygroundAssets = {
  /** The hash of all files, which names their folder. */
  readonly version: string
  readonly files: ReadonlyMap<string, PlaygroundAsset>
}

/** Returns the files, read once per process. Throws when one is missing. */
export function playgroundAssets(): PlaygroundAssets {
  return (made ??= readAssets())
}

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

let made: PlaygroundAssets | undefined

function readAssets(): PlaygroundAssets {
  const graphiql = import.meta.resolve('graphiql/package.json')
  const sources = {
    'react.js': read(import.meta.resolve('react/package.json'), 'umd/react.production.min.js'),
    'react-dom.js': read(import.meta.resolve('react-dom/package.json'), 'umd/react-dom.production.min.js'),
    'graphql-ws.js': read(import.meta.resolve('graphql-ws/package.json'), 'umd/graphql-ws.min.js'),
    // The bundle carries no licence notice.
    'graphiql.js': `/*! GraphiQL\n${read(graphiql, 'LICENSE')}*/\n${read(graphiql, 'graphiql.min.js')}`,
    'graphiql.css': read(graphiql, 'graphiql.min.css'),
    'page.css': read(import.meta.url, 'page.css'),
    'page.js': read(import.meta.url, 'page.js'),
    'fetcher.js': read(import.meta.url, 'fetcher.js'),
    'storage.js': read(import.meta.url, 'storage.js'),
    'icon.svg': read(import.meta.url, '../../pages/browser/icon.svg'),
  }
  const hash = createHash('sha256')
  const files = new Map<string, PlaygroundAsset>()
  for (const [name, source] of Object.entries(sources)) {
    const text = source.replace(/^\/\/# sourceMappingURL=.*$/gm, '') // the maps are not served
    hash.update(`${name}\0${text}\0`)
    files.set(name, { type: typeOf(name), bytes: compressedOnce(Buffer.from(text)) })
  }
  return { version: hash.digest('hex').slice(0, 16), files }
}

/** Reads a file whose path is relative to the URL `from`. */
function read(from: string, path: string): string {
  return readFileSync(new URL(path, from), 'utf8')
}

function typeOf(name: string): string {
  const types = { css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' }
  return `${types[name.split('.').at(-1) as keyof typeof types]}; charset=utf-8`
}

function compressedOnce(plain: Buffer): (encoding: Encoding) => Promise<Buffer> {
  const known = new Map<Encoding, Promise<Buffer>>([['identity', Promise.resolve(plain)]])
  return (encoding) => {
    const bytes = known.get(encoding) ?? (encoding === 'br' ? brotli(plain) : promisify(gzip)(plain, { level: 9 }))
    known.set(encoding, bytes)
    return bytes
  }
}

/** Level 9 is within a few percent of 11, which takes over a second. */
function brotli(plain: Buffer): Promise<Buffer> {
  return promisify(brotliCompress)(plain, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
  })
}
