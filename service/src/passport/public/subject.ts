/**
 * The subject of product information: one item, one batch (AI 10), or one model (GTIN). Its identifiers are URLs below the configured base
 * URL: the GS1 Digital Link names the product, and the document below `/api/product` is its public passport (EN 18219, EN 18222).
 */
import { parseTokenId } from '@touchstone/verdict'
import { parseGtin } from '../../domain/gs1/gtin.ts'
import { encodeSerial } from '../../domain/gs1/serial.ts'
import { classPath, itemPath, type LinkTarget, parseDigitalLink } from '../digital-link.ts'

export type ProductSubject = LinkTarget | { readonly kind: 'token'; readonly tokenId: bigint }

/** Root of the public documents; the path of a Digital Link follows it. */
export const productRoot = '/api/product'

function subjectPath(subject: ProductSubject): string {
  switch (subject.kind) {
    case 'item':
      return itemPath(subject)
    case 'token':
      return `/token/${subject.tokenId}`
    case 'batch':
      return `${classPath(subject.gtin)}/10/${encodeSerial(subject.batch)}`
    case 'class':
      return classPath(subject.gtin)
  }
}

/** Returns the URLs that identify the product and its public passport. */
export function subjectLinks(baseUrl: string, subject: ProductSubject) {
  const path = subjectPath(subject)
  return { product: `${baseUrl}${path}`, passport: `${baseUrl}${productRoot}${path}` }
}

/** Parses the raw path of a page, `/01/…` or `/token/…`; null when it names none. */
export function parseSubjectPath(rawPath: string): ProductSubject | null {
  const [, token] = /^\/token\/([0-9]{1,78})$/.exec(rawPath) ?? []
  if (token !== undefined) {
    const tokenId = parseTokenId(token)
    return tokenId === null ? null : { kind: 'token', tokenId }
  }
  const link = parseDigitalLink(rawPath)
  return link.kind === 'item' || link.kind === 'batch' || link.kind === 'class' ? link : null
}

/** Parses the identifier of a public passport: its URL on this service; null for every other text. */
export function parsePassportId(baseUrl: string, id: string): ProductSubject | null {
  const root = `${baseUrl}${productRoot}`
  return id.startsWith(`${root}/`) ? parseSubjectPath(id.slice(root.length)) : null
}

/** Parses a product identifier. It is a GS1 Digital Link of any resolver, the page of a token here, or a GTIN of 14 digits. */
export function parseProductId(baseUrl: string, id: string): ProductSubject | null {
  const gtin = parseGtin(id)
  if (gtin.ok) return { kind: 'class', gtin: gtin.gtin }
  const [, root = '', path = ''] = /^(https?:\/\/[^/?#]+)(\/[^?#]*)$/.exec(id) ?? []
  const subject = parseSubjectPath(path)
  return subject?.kind === 'token' && root !== baseUrl ? null : subject
}
