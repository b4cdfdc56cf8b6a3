/**
 * The packages that a service offers to those who check it. They are the commands for clients and the library, at `/packages/…`, with their
 * hashes.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { offeredPackages, packagesFolder } from '../domain/release.ts'
import { lazyDocument, staticDocument, type StaticDocument } from '../http/static-document.ts'

const read = (file: string) => new Uint8Array(readFileSync(new URL(file, packagesFolder)))

/** Documents by path. Each file is read at its first request. */
export function packageDocuments(): ReadonlyMap<string, StaticDocument> {
  if (offeredPackages.length === 0) return new Map()
  const sums = () => offeredPackages.map((file) => `${hash('sha256', read(file))}  ${file}\n`).join('')
  return new Map([
    ...offeredPackages.map(
      (file) => [`/packages/${file}`, lazyDocument(() => staticDocument('application/gzip', read(file)))] as const,
    ),
    ['/packages/SHA256SUMS', lazyDocument(() => staticDocument('text/plain; charset=utf-8', sums()))],
  ])
}
