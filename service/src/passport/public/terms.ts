/**
 * The terms of public product information, as data. They are the source of its JSON-LD context, of the vocabulary `/ns/product`, and of the
 * dictionary references of EN 18223. A term with an IRI is of schema.org or GS1; the others are our own.
 */
import { gs1Vocabulary } from '../links.ts'

type DataType =
  | 'xsd:string'
  | 'xsd:anyURI'
  | 'xsd:date'
  | 'xsd:dateTime'
  | 'xsd:decimal'
  | 'xsd:integer'
  | 'xsd:boolean'
type Term = { readonly iri?: string; readonly type: DataType; readonly comment: string }

const schema = 'https://schema.org/'
const text = (comment: string, iri?: string): Term => ({ type: 'xsd:string', comment, ...(iri && { iri }) })
const link = (comment: string, iri?: string): Term => ({ type: 'xsd:anyURI', comment, ...(iri && { iri }) })
const decimal = (comment: string): Term => ({ type: 'xsd:decimal', comment })
const integer = (comment: string): Term => ({ type: 'xsd:integer', comment })
const instant = (comment: string): Term => ({ type: 'xsd:dateTime', comment })

export const publicTerms: Readonly<Record<string, Term>> = {
  name: text('Name.', `${schema}name`),
  brand: text('Brand.', `${schema}brand`),
  description: text('Description.', `${schema}description`),
  sku: text('Article number of the brand.', `${schema}sku`),
  size: text('Size.', `${schema}size`),
  origin: text('Origin in the words of the supplier.'),
  countryOfOrigin: text('ISO 3166-1 alpha-2 code of the country of origin.', `${schema}countryOfOrigin`),
  image: link('Picture on the supplier’s own host.', `${schema}image`),
  kind: text('Kind of product.', `${schema}category`),
  language: text('BCP 47 language of the texts.', `${schema}inLanguage`),
  model: text('Model.', `${schema}model`),
  number: text('Number of a model, a spare part or a certificate.', `${schema}identifier`),
  categories: text('Codes of classifications.', `${schema}hasCategoryCode`),
  code: text('Code within a classification.', `${schema}codeValue`),
  scheme: link('Classification that a code belongs to.', `${schema}inCodeSet`),
  care: text('Instructions for care.'),
  repair: text('How and where to repair the product.'),
  text: text('Guidance in words.', `${schema}text`),
  url: link('Page with more of it.', `${schema}url`),
  spareParts: text('Spare parts.'),
  until: { type: 'xsd:date', comment: 'Day until which a spare part is available.' },
  substances: text('Substances of concern.'),
  cas: text('CAS number of a substance.'),
  percent: decimal('Share of the mass in percent.'),
  recycledPercent: decimal('Recycled share of a material in percent.'),
  location: text('Place of a substance in the product.'),
  materials: text('Materials.', `${schema}material`),
  country: text('ISO 3166-1 alpha-2 code of a country.', `${schema}addressCountry`),
  recycling: text('How to recycle the product.'),
  certificates: text('Certificates.', `${schema}hasCertification`),
  issuer: text('Issuer of a certificate.', `${schema}issuedBy`),
  validUntil: { type: 'xsd:date', comment: 'Last day of a certificate.', iri: `${schema}expires` },
  footprint: text('Carbon footprint.'),
  kgCo2e: decimal('Kilograms of CO2 equivalent.'),
  unit: text('Unit that a footprint is for.', `${schema}unitText`),
  scope: text('Stages of life that a footprint covers.'),
  method: text('Method of a footprint.'),
  verifiedBy: text('Verifier of a footprint.'),
  facility: text('Place of manufacture.'),
  id: link('Identifier of a facility.', `${schema}sameAs`),
  recall: text('Recall notice.'),
  since: { type: 'xsd:date', comment: 'First day of a recall.' },
  gtin: text('GTIN of 14 digits.', `${schema}gtin14`),
  serialNumber: text('Serial number (AI 21).', `${schema}serialNumber`),
  batchNumber: text('Batch or lot (AI 10).', `${gs1Vocabulary}hasBatchLotNumber`),
  tokenId: text('Token id in decimal.'),
  granularity: text('model, batch or item.'),
  notice: text('Warning about the supplier’s text.'),
  evidence: text('Anchors of the facts on chain, one for each item that they were read of.'),
  chainId: integer('EIP-155 chain id.'),
  contract: text('Address of the token contract.'),
  metadataHash: text('The hash that the contract holds: keccak256 of the RFC 8785 form of the metadata.'),
  metadataHashMatches: {
    type: 'xsd:boolean',
    comment: 'Whether the stored metadata has the hash. Absent without metadata.',
  },
  detailsHash: text('Hash of the product details, which the metadata names.'),
  metadata: link('The metadata as it was hashed.'),
  details: link('The product details as they were hashed.'),
  restricted: text('Documents with the elements of access tiers that the reader may see.'),
  tier: text('Access tier of EN 18239: interest or authority.'),
  restrictedHash: text('Hash of the document of a tier, which the product details name.'),
  document: link('The document of a tier as it was hashed.'),
  blockNumber: integer('Block at which the hash was read.'),
  blockHash: text('Hash of that block.'),
  setInBlock: integer('Block that set the hash.'),
  setInTransaction: text('Transaction that set the hash.'),
  setByLog: integer('Index in its block of the event that set the hash.'),
  setAt: instant('Time of the block that set the hash.'),
  replacedAt: instant('Time of the block that replaced the hash. Absent for the present one.'),
}

const ownVocabulary = (baseUrl: string) => `${baseUrl}/ns/product`

export function productContextUrl(baseUrl: string): string {
  return `${baseUrl}/contexts/product/v1`
}

export function termIri(baseUrl: string, term: string): string {
  return publicTerms[term]?.iri ?? `${ownVocabulary(baseUrl)}#${term}`
}

/** Returns `/contexts/product/v1`. It has no `@vocab`, so that a misspelt term fails. */
export function productContext(baseUrl: string): Readonly<Record<string, unknown>> {
  const definitions = Object.entries(publicTerms).map(([term, { type }]) => {
    const id = { '@id': termIri(baseUrl, term) }
    if (type === 'xsd:anyURI') return [term, { ...id, '@type': '@id' }]
    return [term, type === 'xsd:string' ? id : { ...id, '@type': type.replace('xsd:', xsd) }]
  })
  return {
    '@context': { '@version': 1.1, Product: `${schema}Product`, ...(Object.fromEntries(definitions) as object) },
  }
}

const xsd = 'http://www.w3.org/2001/XMLSchema#'

/** Returns the vocabulary `/ns/product` as a JSON-LD document: our own terms only. */
export function productVocabulary(baseUrl: string) {
  return {
    '@context': {
      comment: { '@id': 'http://www.w3.org/2000/01/rdf-schema#comment', '@language': 'en' },
      isDefinedBy: { '@id': 'http://www.w3.org/2000/01/rdf-schema#isDefinedBy', '@type': '@id' },
    },
    '@graph': Object.entries(publicTerms).flatMap(([term, { iri, comment }]) =>
      iri !== undefined
        ? []
        : [
            {
              '@id': termIri(baseUrl, term),
              '@type': 'http://www.w3.org/1999/02/22-rdf-syntax-ns#Property',
              comment,
              isDefinedBy: ownVocabulary(baseUrl),
            },
          ],
    ),
  }
}
