/**
 * The service's own terms (spec §2.8), as data: the source of the JSON-LD context and of the vocabulary at `/ns/passport`.
 * The table never changes: a changed term is a new version of the context.
 */
import { unspecifiedFacilityUrl, vocabularyUrl } from './links.ts'

type Range = 'string' | 'integer' | 'boolean' | 'dateTime' | 'AssetStatus' | 'ChainReference'
/** A class, or a property of the classes in `of`. */
export type Term = {
  readonly term: string
  readonly label: string
  readonly comment: string
  readonly of?: readonly string[]
  readonly range?: Range
  readonly many?: true
}

const [status, chain, anchor] = ['AssetStatus', 'ChainReference', 'OnChainMetadataAnchor'] as const

const classes: readonly Term[] = [
  {
    term: status,
    label: 'Asset status',
    comment: 'On-chain lifecycle state of one item, read at one block and assembled by the server.',
  },
  {
    term: chain,
    label: 'Chain reference',
    comment: 'Chain, contract, token and block that a statement was read from, so that anyone can read it again.',
  },
  {
    term: anchor,
    label: 'On-chain metadata anchor',
    comment: 'Evidence that supplier-written metadata is the metadata whose hash the token contract holds.',
  },
]

/** Classes, range and comment of each property, in the order in which a passport shows them. */
const properties: Readonly<Record<string, readonly [of: readonly string[], Range, comment: string, many?: 'many']>> = {
  assetStatus: [[], status, 'The on-chain status of a product item.'],
  state: [[status], 'string', 'MINTED, BOUND, ACTIVATED, CLAIMED, FLAGGED or RECYCLED.'],
  stateCode: [[status], 'integer', 'The state as the number that the contract stores, 1 to 6.'],
  flagged: [[status], 'boolean', 'Whether the item is reported lost, stolen or under recall.'],
  ownerCommitment: [
    [status],
    'string',
    'keccak256 of chain id, contract, token id and owner: tests a candidate address without naming the owner. Absent without an owner.',
  ],
  tapCounter: [[status], 'integer', 'Read counter of the chip at the tap that opened the passport.'],
  observedAt: [[status], 'dateTime', 'Time of the block at which the state was read.'],
  chainRef: [[status, anchor], chain, 'Source of the statement.'],
  network: [[status], 'string', 'Name of the network, always base-sepolia in version 1.'],
  auditStatus: [[status], 'string', 'Whether the contracts are audited, always unaudited in version 1.'],
  productionReady: [[status], 'boolean', 'Whether to rely on the result, always false in version 1.'],
  coveredByMetadataHash: [[status], 'boolean', 'Always false: no hash covers the status.'],
  chainId: [[chain], 'integer', 'EIP-155 chain id.'],
  contract: [[chain], 'string', 'Address of the token contract, EIP-55 checksummed.'],
  tokenId: [[chain], 'string', 'Token id in decimal; text, because ids reach 2^256 - 1.'],
  blockNumber: [[chain], 'integer', 'Number of the block.'],
  blockHash: [[chain], 'string', 'Hash of the block.'],
  metadataHash: [[anchor], 'string', 'The hash that the contract holds; zero when it holds none.'],
  hashAlgorithm: [[anchor], 'string', 'keccak-256, the original padding as Ethereum uses it.'],
  canonicalization: [[anchor], 'string', 'RFC8785: the form of the metadata that is hashed.'],
  metadataHashMatches: [
    [anchor],
    'boolean',
    'Whether the stored metadata has the hash. Absent when there is no metadata to compare.',
  ],
  covers: [[anchor], 'string', 'JSON pointers of the members that were built from the hashed metadata.', 'many'],
  doesNotCover: [[anchor], 'string', 'JSON pointers of members that the hash says nothing about.', 'many'],
}

/** Every term, classes first. */
export const vocabularyTerms: readonly Term[] = [
  ...classes,
  ...Object.entries(properties).map(([term, [of, range, comment, many]]) => ({
    term,
    label: labelOf(term),
    comment,
    of,
    range,
    ...(many && { many: true as const }),
  })),
]

/** Separates the words of a term: `stateCode` is «state code». */
function labelOf(term: string): string {
  return term.replace(/Ref$/, 'Reference').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

/** The identifier scheme of items without GTIN: not a term, but an IRI of this vocabulary. */
const tokenIdScheme = {
  term: 'token-id',
  label: 'Token id',
  comment: 'Identifies an item by the decimal id of its token in the registry contract.',
} as const

export function vocabularyDocument(baseUrl: string) {
  const base = vocabularyUrl(baseUrl)
  const described = ({ term, label, comment }: Pick<Term, 'term' | 'label' | 'comment'>) => ({
    '@id': `${base}#${term}`,
    label,
    comment,
    isDefinedBy: base,
  })
  return {
    '@context': {
      rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
      rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
      label: { '@id': 'rdfs:label', '@language': 'en' },
      comment: { '@id': 'rdfs:comment', '@language': 'en' },
      isDefinedBy: { '@id': 'rdfs:isDefinedBy', '@type': '@id' },
      domain: { '@id': 'rdfs:domain', '@type': '@id' },
      range: { '@id': 'rdfs:range', '@type': '@id' },
    },
    '@graph': [
      ...vocabularyTerms.map((term) => ({
        ...described(term),
        '@type': term.range === undefined ? 'rdfs:Class' : 'rdf:Property',
        // Two classes share chainRef; two domains would mean their intersection in RDF Schema, so it names none.
        ...(term.of?.length === 1 && { domain: `${base}#${term.of[0]}` }),
        ...(term.range !== undefined && { range: rangeIri(term.range, base) }),
      })),
      { ...described(tokenIdScheme), '@type': 'https://vocabulary.uncefact.org/untp/IdentifierScheme' },
    ],
  }
}

function rangeIri(range: Range, base: string): string {
  return isClass(range) ? `${base}#${range}` : `http://www.w3.org/2001/XMLSchema#${range}`
}

function isClass(range: Range): boolean {
  return range === status || range === chain
}

/** Returns `/ns/unspecified-facility`: UNTP requires a facility, and the supplier named none. */
export function unspecifiedFacilityDocument(baseUrl: string) {
  return {
    '@context': { name: 'https://schema.org/name', comment: 'http://www.w3.org/2000/01/rdf-schema#comment' },
    '@id': unspecifiedFacilityUrl(baseUrl),
    '@type': 'https://vocabulary.uncefact.org/untp/Facility',
    name: 'Not specified by the supplier',
    comment: 'Stands where a passport must name a facility and the supplier has named none.',
  }
}

type Definition = string | Readonly<Record<string, unknown>>

/**
 * Returns `/contexts/passport/v1`, the JSON-LD context of the service's own terms (spec §2.8). It never changes; a changed term is `/v2`.
 * It has no `@vocab`, so that a misspelt term fails. All terms are protected, so no later context redefines them.
 */
export function passportContext(baseUrl: string): Readonly<Record<string, unknown>> {
  const base = vocabularyUrl(baseUrl)
  const free = vocabularyTerms.filter((term) => term.of?.length === 0)
  return {
    '@context': {
      '@version': 1.1,
      '@protected': true,
      ...Object.fromEntries(free.map((term) => [term.term, definition(term, base)])),
      ...Object.fromEntries(classes.map((term) => [term.term, classDefinition(term, base)])),
    },
  }
}

function classDefinition({ term }: Term, base: string): Definition {
  const properties = vocabularyTerms.filter(({ of }) => of?.includes(term))
  return {
    '@id': `${base}#${term}`,
    '@context': {
      '@protected': true,
      ...Object.fromEntries(properties.map((property) => [property.term, definition(property, base)])),
    },
  }
}

function definition({ term, range = 'string', many }: Term, base: string): Definition {
  const id = `${base}#${term}`
  if (many === true) return { '@id': id, '@container': '@set' }
  if (range === 'string') return id
  return { '@id': id, '@type': isClass(range) ? '@id' : rangeIri(range, base) }
}
