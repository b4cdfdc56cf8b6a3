/**
 * Signed forms of a passport (spec §9, «issuer-signature signing is planned»): a JWS (W3C VC-JOSE-COSE) and an embedded proof
 * (W3C Data Integrity, `eddsa-jcs-2022`). Both sign a snapshot: the unsigned document with an end and a revocable status.
 */
import { hash } from 'node:crypto'
import { base58 } from '@scure/base'
import canonicalize from 'canonicalize'
import { ServiceError } from '../../lib/errors.ts'
import type { SignedForm } from '../../http/accept.ts'
import { scope, type Passport } from '../credential.ts'
import { keyIdOf } from '../did-document.ts'
import type { Algorithm, IssuerKey } from './issuer-keys.ts'
import { formatSecond } from '../../domain/text.ts'
import { statusEntries, untpStatusEntry } from './status-list.ts'
import type { StatusIndex } from './status-store.ts'

const snapshotSeconds = 24 * 3600

export type Signer = ReturnType<typeof createSigner>
type JwsType = { readonly typ: string; readonly cty?: string }

export function createSigner({ did, keys }: { readonly did: string; readonly keys: readonly IssuerKey[] }) {
  const jwsKey = activeKey(keys, 'ES256')
  const proofKey = activeKey(keys, 'Ed25519')

  /** Returns the parts of a JWS (RFC 7515). Returns null without a key. jose does not sign with a key that it cannot read. */
  async function jwsOf(type: JwsType, payload: string) {
    if (jwsKey === null) return null
    const header = JSON.stringify({ alg: 'ES256', ...type, kid: keyIdOf(did, jwsKey.key) })
    const [head, body] = [base64url(Buffer.from(header)), base64url(Buffer.from(payload))]
    return { head, body, signature: base64url(await jwsKey.sign(Buffer.from(`${head}.${body}`))) }
  }

  /** Returns a JWS of any type over claims. It throws INTERNAL without an active ES256 key. */
  async function signJws(type: JwsType, claims: object): Promise<string> {
    const jws = await jwsOf(type, JSON.stringify(claims))
    if (jws === null) throw missingKey('ES256')
    return `${jws.head}.${jws.body}.${jws.signature}`
  }

  const forms: readonly SignedForm[] = [
    ...(jwsKey === null ? [] : ['application/vc+jwt' as const]),
    ...(proofKey === null ? [] : ['application/vc' as const]),
  ]
  return {
    /** The forms with an active key; empty while signing is off. */
    forms,
    signJws,
    /** Returns a JWS over the credential, the form `application/vc+jwt`. It throws INTERNAL without an active ES256 key. */
    signJwt: (credential: object) => signJws({ typ: 'vc+jwt', cty: 'vc' }, credential),

    /** Returns a JWS over the RFC 8785 form of a document, without its payload (RFC 7515 appendix F); null without an active ES256 key. */
    async signDocument(document: object) {
      const jws = await jwsOf({ typ: 'JOSE' }, canonicalize(document) ?? '')
      return jws && { protected: jws.head, signature: jws.signature }
    },

    /** Returns the credential with an embedded proof, the form `application/vc`. It throws INTERNAL without an active Ed25519 key. */
    async addProof<T extends object>(credential: T, now: number) {
      if (proofKey === null) throw missingKey('Ed25519')
      const options = {
        type: 'DataIntegrityProof',
        cryptosuite: 'eddsa-jcs-2022',
        created: formatSecond(Math.floor(now / 1000)),
        verificationMethod: keyIdOf(did, proofKey.key),
        proofPurpose: 'assertionMethod',
        ...('@context' in credential && { '@context': credential['@context'] }),
      } as const
      const signature = await proofKey.sign(Buffer.concat([jcsHash(options), jcsHash(credential)]))
      return { ...credential, proof: { ...options, proofValue: `z${base58.encode(signature)}` } }
    },
  }
}

/**
 * The two shapes of a signed passport. `untp` is valid against the UNTP 0.7.0 schema that it names: one status, its index a number. `w3c`
 * follows Bitstring Status List 1.0 to the letter: two statuses, their index in text; it names no schema, because UNTP's rejects it.
 */
export const signedProfiles = ['untp', 'w3c'] as const
export type SignedProfile = (typeof signedProfiles)[number]

type SnapshotOptions = Readonly<{ now: number; baseUrl: string; at: StatusIndex; profile: SignedProfile }>

/**
 * Returns the document to sign. It has the statements of the unsigned one, but it ends after a day and names its status. `now` in
 * milliseconds.
 */
export function snapshotOf(passport: Passport, { now, baseUrl, at, profile }: SnapshotOptions) {
  const { credentialSchema, ...kept } = passport
  return {
    ...kept,
    description: `Signed passport (v1): a snapshot that ends at validUntil. ${scope}`,
    validUntil: formatSecond(Math.floor(now / 1000) + snapshotSeconds),
    ...(profile === 'untp'
      ? { credentialSchema, credentialStatus: untpStatusEntry(baseUrl, at) }
      : { credentialStatus: statusEntries(baseUrl, at) }),
  }
}

/** Returns the claims of a snapshot for `signJwt`. By `exp` libraries for JWT reject what has ended (VC-JOSE-COSE §3.1.3). */
export function snapshotClaims<T extends { readonly validUntil: string }>(snapshot: T) {
  return { ...snapshot, exp: Date.parse(snapshot.validUntil) / 1_000 }
}

function activeKey(keys: readonly IssuerKey[], algorithm: Algorithm) {
  const key = keys.find((each) => each.status === 'active' && each.algorithm === algorithm)
  return key?.sign ? { key, sign: key.sign } : null
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

/** Returns SHA-256 of the RFC 8785 form (VC-DI-EDDSA §3.3.3, §3.3.4). */
function jcsHash(value: object): Buffer {
  return hash('sha256', canonicalize(value) ?? '', 'buffer')
}

function missingKey(algorithm: Algorithm): ServiceError {
  return new ServiceError('INTERNAL', `There is no active ${algorithm} issuer key.`)
}
