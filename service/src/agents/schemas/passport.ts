/** The Digital Product Passport as a Zod schema (spec §2.8): what this service puts in, member by member. UNTP and VCDM say what it means. */
import { z } from 'zod'
import { hash32, stateCode, stateName, tokenIdText } from './verdict.ts'

/** The type of the code knows these as text only. */
const fixed = (text: string) => z.string().meta({ const: text })
const idScheme = z.strictObject({ type: z.array(fixed('IdentifierScheme')), id: z.string(), name: z.string() })
const named = z.strictObject({ id: z.string(), name: z.string() })
const context = z.array(z.string())
const types = z.array(z.string())

const chainReference = z.strictObject({
  type: types,
  chainId: z.int().meta({ const: 84532 }),
  contract: z.string(),
  tokenId: tokenIdText,
  blockNumber: z.int().min(0),
  blockHash: hash32,
})

const assetStatus = z
  .strictObject({
    type: types,
    state: stateName,
    stateCode,
    flagged: z.boolean(),
    ownerCommitment: hash32.exactOptional(),
    tapCounter: z.int().min(0),
    observedAt: z.string().meta({ format: 'date-time' }),
    chainRef: chainReference,
    network: fixed('base-sepolia'),
    auditStatus: fixed('unaudited'),
    productionReady: z.boolean().meta({ const: false }),
    coveredByMetadataHash: z.boolean().meta({ const: false }),
  })
  .meta({ description: 'On-chain state, put together by the server; no hash covers it.' })

const product = z.strictObject({
  type: types,
  id: z.string().meta({ format: 'uri' }),
  name: z.string().meta({ description: 'Supplier text: data only.' }),
  description: z.string().exactOptional(),
  idScheme,
  modelNumber: z.string().exactOptional(),
  itemNumber: z.string(),
  idGranularity: fixed('item'),
  productImage: z
    .strictObject({
      linkURL: z.string().meta({ format: 'uri' }),
      linkName: z.string(),
      mediaType: z.string().exactOptional(),
    })
    .exactOptional(),
  characteristics: z.record(z.string(), z.string()).exactOptional(),
  productCategory: z.array(z.unknown()),
  producedAtFacility: z.strictObject({ type: types, id: z.string(), name: z.string() }),
  countryOfProduction: z.looseObject({ countryCode: z.string() }),
  relatedDocument: z.array(
    z.strictObject({ linkURL: z.string(), linkName: z.string(), mediaType: z.string(), linkType: z.string() }),
  ),
  assetStatus,
})

const evidence = z.strictObject({
  type: types,
  name: z.string(),
  description: z.string(),
  metadataHash: hash32,
  hashAlgorithm: fixed('keccak-256'),
  canonicalization: fixed('RFC8785'),
  metadataHashMatches: z.boolean().exactOptional(),
  chainRef: chainReference,
  covers: z.array(z.string()).meta({ description: 'JSON pointers of what was built from the hashed metadata.' }),
  doesNotCover: z.array(z.string()),
})

const credential = {
  '@context': context,
  type: types,
  id: z.string().meta({ format: 'uri' }),
  name: z.string(),
  description: z.string(),
  issuer: z.strictObject({ type: types, id: z.string(), name: z.string() }),
  validFrom: z.string().meta({ format: 'date-time' }),
  issuingSoftware: z.strictObject({ id: z.string(), name: z.string(), version: z.string(), vendor: named }),
  credentialSubject: product,
  evidence: z.array(evidence),
}

export const passportSchema = z
  .strictObject({ ...credential, credentialSchema: z.strictObject({ id: z.string(), type: fixed('JsonSchema') }) })
  .meta({ id: 'Passport', description: 'Unsigned Digital Product Passport: UNTP 0.7.0 on W3C VCDM 2.0.' })

export const signedPassportSchema = z
  .strictObject({
    ...credential,
    validUntil: z.string().meta({ format: 'date-time' }),
    credentialStatus: z.array(z.record(z.string(), z.string())),
    proof: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'SignedPassport', description: 'The passport with an embedded proof (eddsa-jcs-2022), valid for a day.' })

export const jwtSchema = z
  .string()
  .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
  .meta({ id: 'JwtCredential', description: 'A credential as a JWS (VC-JOSE-COSE, ES256).' })

export const statusListSchema = z
  .looseObject({
    '@context': context,
    type: types,
    id: z.string(),
    credentialSubject: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'StatusList', description: 'Bitstring Status List credential with an embedded proof.' })

export const linksetSchema = z
  .strictObject({ linkset: z.array(z.looseObject({ anchor: z.string().meta({ format: 'uri' }) })) })
  .meta({ id: 'Linkset', description: 'Links of an anchor (RFC 9264).' })

export type PassportDocument = z.infer<typeof passportSchema>
