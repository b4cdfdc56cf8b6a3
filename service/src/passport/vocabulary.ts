/**
 * `/ns/passport`: the service's own terms (spec §2.8), as data. The JSON-LD context, the JSON-LD form of the vocabulary and its page
 * all come from this table. It never changes: a changed term is a new version of the context.
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

const property = (
  of: string | readonly string[],
  term: string,
  range: Range,
  label: string,
  comment: string,
): Term => ({
  term,
  label,
  comment,
  of: typeof of === 'string' ? [of] : of,
  range,
})
const [status, chain, anchor] = ['AssetStatus', 'ChainReference', 'OnChainMetadataAnchor'] as const

/** Every term, classes first, properties in the order in which a passport shows them. */
export const terms: readonly Term[] = [
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
  property([], 'assetStatus', status, 'asset status', 'The on-chain status of a product item.'),
  property(status, 'state', 'string', 'state', 'MINTED, BOUND, ACTIVATED, CLAIMED, FLAGGED or RECYCLED.'),
  property(status, 'stateCode', 'integer', 'state code', 'The state as the number that the contract stores, 1 to 6.'),
  property(status, 'flagged', 'boolean', 'flagged', 'Whether the item is reported lost, stolen or under recall.'),
  property(
    status,
    'ownerCommitment',
    'string',
    'owner commitment',
    'keccak256 of chain id, contract, token id and owner: tests a candidate address without naming the owner. Absent without an owner.',
  ),
  property(
    status,
    'tapCounter',
    'integer',
    'tap counter',
    'Read counter of the chip at the tap that opened the passport.',
  ),
  property(status, 'observedAt', 'dateTime', 'observed at', 'Time of the block at which the state was read.'),
  property([status, anchor], 'chainRef', chain, 'chain reference', 'Where the statement was read.'),
  property(status, 'network', 'string', 'network', 'Name of the network, always base-sepolia in version 1.'),
  property(
    status,
    'auditStatus',
    'string',
    'audit status',
    'Whether the contracts are audited, always unaudited in version 1.',
  ),
  property(
    status,
    'productionReady',
    'boolean',
    'production ready',
    'Whether to rely on the result, always false in version 1.',
  ),
  property(
    status,
    'coveredByMetadataHash',
    'boolean',
    'covered by metadata hash',
    'Always false: no hash covers the status.',
  ),
  property(chain, 'chainId', 'integer', 'chain id', 'EIP-155 chain id.'),
  property(chain, 'contract', 'string', 'contract', 'Address of the token contract, EIP-55 checksummed.'),
  property(chain, 'tokenId', 'string', 'token id', 'Token id in decimal; text, because ids reach 2^256 - 1.'),
  property(chain, 'blockNumber', 'integer', 'block number', 'Number of the block.'),
  property(chain, 'blockHash', 'string', 'block hash', 'Hash of the block.'),
  property(
    anchor,
    'metadataHash',
    'string',
    'metadata hash',
    'The hash that the contract holds; zero when it holds none.',
  ),
  property(
    anchor,
    'hashAlgorithm',
    'string',
    'hash algorithm',
    'keccak-256, the original padding as Ethereum uses it.',
  ),
  property(
    anchor,
    'canonicalization',
    'string',
    'canonicalization',
    'RFC8785: the form of the metadata that is hashed.',
  ),
  property(
    anchor,
    'metadataHashMatches',
    'boolean',
    'metadata hash matches',
    'Whether the stored metadata has the hash. Absent when there is no metadata to compare.',
  ),
  {
    ...property(
      anchor,
      'covers',
      'string',
      'covers',
      'JSON pointers of the members that were built from the hashed metadata.',
    ),
    many: true,
  },
  {
    ...property(
      anchor,
      'doesNotCover',
      'string',
      'does not cover',
      'JSON pointers of members that the hash says nothing about.',
    ),
    many: true,
  },
]

/** The identifier scheme of items without GTIN: not a term, but an IRI of this vocabulary. */
const tokenIdScheme = {
  term: 'token-id',
  label: 'Token id',
  comment: 'Identifies an item by the decimal id of its token in the registry contract.',
} as const

const datatype = (range: Range, base: string): string =>
  /^[A-Z]/.test(range) ? `${base}#${range}` : `http://www.w3.org/2001/XMLSchema#${range}`

/** The vocabulary as a JSON-LD document. */
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
      ...terms.map((term) => ({
        ...described(term),
        '@type': term.range === undefined ? 'rdfs:Class' : 'rdf:Property',
        // Two classes share chainRef; two domains would mean «both at once» in RDF Schema, so it names none.
        ...(term.of?.length === 1 && { domain: `${base}#${term.of[0]}` }),
        ...(term.range !== undefined && { range: datatype(term.range, base) }),
      })),
      { ...described(tokenIdScheme), '@type': 'https://vocabulary.uncefact.org/untp/IdentifierScheme' },
    ],
  }
}

/** `/ns/unspecified-facility`: UNTP asks for a facility, and the supplier named none. */
export function unspecifiedFacilityDocument(baseUrl: string) {
  return {
    '@context': { name: 'https://schema.org/name', comment: 'http://www.w3.org/2000/01/rdf-schema#comment' },
    '@id': unspecifiedFacilityUrl(baseUrl),
    '@type': 'https://vocabulary.uncefact.org/untp/Facility',
    name: 'Not specified by the supplier',
    comment: 'Stands where a passport must name a facility and the supplier has named none.',
  }
}
