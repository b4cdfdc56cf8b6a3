/**
 * The assets of the pages: style, scripts, icon, the reader of QR codes, the curve of passkeys, the client library (spec §1, «Trust model»).
 * All bytes are made once, at start-up, and their hash is part of their path.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { posix } from 'node:path'
import { pageHeaders, policyOf } from './response.ts'
import type { BrandTheme } from '../../../pages/brands/theme.ts'
import { offlinePage } from '../../../pages/offline.ts'
import { errorResponse, taggedResponse } from '../../../http/responses.ts'
import { mediaTypeOf, siteFileHeaders } from '../../../http/static-document.ts'

export const assetsPrefix = '/assets/'

/** Returns the assets, the same for every host of the process. Throws when a file of the program is missing. */
export function pageAssets(): ReturnType<typeof readAssets> {
  return (made ??= readAssets())
}

let made: ReturnType<typeof readAssets> | undefined

function readAssets() {
  const files = new Map<string, string>()
  for (const name of [
    'page.css',
    'page.js',
    'wallet.js',
    'passkey.js',
    'offline.js',
    'icon.svg',
    'docs.css',
    'docs.js',
    'lookup.css',
    'scan.js',
    'code-reader.js',
    'check.js',
  ])
    files.set(name, read(new URL(`../../../pages/browser/${name}`, import.meta.url)))
  const index = import.meta.resolve('@touchstone/verdict')
  const library = new URL('.', index)
  const [extension] = /\.[jt]s$/.exec(index) ?? [] // the package of a release holds JavaScript
  for (const entry of ['check/recheck', 'rules/owner', 'attestation/eip712'])
    addModule(files, library, new URL(`${entry}${extension}`, library))
  for (const module of [
    import.meta.resolve('@noble/curves/secp256k1.js'),
    import.meta.resolve('@noble/hashes/sha3.js'),
    import.meta.resolve('@noble/hashes/utils.js'),
    import.meta.resolve('qr'),
    import.meta.resolve('qr/decode.js'),
  ])
    addModule(files, library, new URL(module))

  const hash = createHash('sha256').update(offlinePage(''))
  for (const [name, text] of files) hash.update(`${name}\0${text}\0`)
  const version = hash.digest('hex').slice(0, 16)
  files.set('offline.html', offlinePage(`${assetsPrefix}${version}`))
  const etag = `"${version}"`
  return {
    /** Path of the folder, without a slash at the end. */
    folder: `${assetsPrefix}${version}`,
    /** Answers a raw path below `/assets/`. */
    respond: (path: string, ifNoneMatch: string | undefined): Response => {
      const [asked, ...rest] = path.slice(assetsPrefix.length).split('/')
      const name = rest.join('/')
      const text = files.get(name)
      if (text === undefined) return errorResponse(404, 'There is nothing at this path.')
      // A page of an older or newer instance names another version: it gets these files, but does not cache them.
      const lifetime = asked === version ? 'public, max-age=31536000, immutable' : 'no-cache'
      const shared = { ...siteFileHeaders, ...ownHeaders[name], 'Cache-Control': lifetime, ETag: etag }
      return taggedResponse(ifNoneMatch, text, shared, { 'Content-Type': mediaTypeOf(name) })
    },
  }
}

/** Answers the style sheet or the typeface of a brand theme; the path holds the hash of the content. */
export function themeResponse(themes: readonly BrandTheme[], path: string): Response {
  const theme = themes.find(({ stylesheet, typeface }) => stylesheet === path || typeface?.path === path)
  if (theme === undefined) return errorResponse(404, 'There is nothing at this path.')
  const headers = { ...siteFileHeaders, 'Cache-Control': 'public, max-age=31536000, immutable' }
  if (theme.typeface?.path === path)
    return new Response(new Uint8Array(theme.typeface.bytes), { headers: { ...headers, 'Content-Type': 'font/woff2' } })
  return new Response(theme.css, { headers: { ...headers, 'Content-Type': 'text/css; charset=utf-8' } })
}

/**
 * The worker may load its files, and stands for the pages of the whole host. The offline page is a page. Other sites show the icon: the agent
 * card and the registration name it.
 */
const ownHeaders: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'offline.js': {
    'Content-Security-Policy': "default-src 'none'; connect-src 'self'",
    'Service-Worker-Allowed': '/',
  },
  'icon.svg': { 'Cross-Origin-Resource-Policy': 'cross-origin' },
  'offline.html': { ...pageHeaders, 'Content-Security-Policy': policyOf({ form: false, font: false, connect: [] }) },
}

/** Adds a module and its imports as JavaScript with relative specifiers: without an import map the policy stays `'self'`. */
function addModule(files: Map<string, string>, library: URL, file: URL): void {
  const name = nameOf(library, file)
  if (files.has(name)) return
  files.set(name, '') // modules may import one another
  const source = read(file)
  const imported: URL[] = []
  const text = (file.pathname.endsWith('.ts') ? withoutTypes(source) : source)
    .replace(importLine, (_line, before: string, specifier: string) => {
      const target = specifier.startsWith('.') ? new URL(specifier, file) : new URL(import.meta.resolve(specifier))
      imported.push(target)
      const path = posix.relative(posix.dirname(name), nameOf(library, target))
      return `${before}'${path.startsWith('.') ? path : `./${path}`}'`
    })
    .replace(/^\/\/# sourceMappingURL=.*$/gm, '')
  files.set(name, text)
  for (const target of imported) addModule(files, library, target)
}

/** An import begins its line; an example in a comment does not. */
const importLine = /^((?:import|export|\})[^'"\n]*?\bfrom\s*|import\s*)['"]([^'"\n]+)['"]/gm

/** Names a module, such as `verdict/check/recheck.js`, `noble/hashes/sha3.js` or `qr/decode.js`. */
function nameOf(library: URL, file: URL): string {
  if (file.href.startsWith(library.href))
    return `verdict/${file.href.slice(library.href.length).replace(/\.ts$/, '.js')}`
  const [, folder, below] = /\/node_modules\/(@noble|qr)\/(.+)$/.exec(file.pathname) ?? []
  if (folder === undefined)
    throw new Error(`The client library imports a file that cannot be served: ${file.pathname.split('/').at(-1)}`)
  return `${folder.replace('@', '')}/${below}`
}

/** Strips types without Node's warning that the function is experimental, which operators do not need. */
function withoutTypes(source: string): string {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

function read(file: URL): string {
  return readFileSync(file, 'utf8')
}
