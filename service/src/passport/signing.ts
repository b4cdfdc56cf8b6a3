/**
 * Signed forms of a passport (spec §9, «issuer-signature signing is planned»): a JWS (W3C VC-JOSE-COSE) and an embedded proof
 * (W3C Data Integrity, `eddsa-jcs-2022`). Both sign a snapshot: the unsigned document with an end and a revocable status.
 */
import { createHash, sign } from 'node:crypto'
import canonicalize from 'canonicalize'
import { CompactSign } from 'jose'
import { ServiceError } from '../errors.ts'
import type { SignedForm } from './accept.ts'
import { scope, type Passport } from './credential.ts'
import { keyIdOf } from './did-document.ts'
import type { Algorithm, IssuerKey } from './issuer-keys.ts'
import { base58Multibase } from './multibase.ts'
import { timeText } from './product.ts'
import type { StatusEntry } from './status-list.ts'

const snapshotSeconds = 24 * 3600

export type Signer = {
  /** The forms that there is an active key for; empty while signing is off. */
  readonly forms: readonly SignedForm[]
  /** A JWS over the credential: what `application/vc+jwt` answers. It throws INTERNAL without an active ES256 key. */
  readonly signJwt: (credential: object) => Promise<string>
  /** The credential with an embedded proof: what `application/vc` answers. It throws INTERNAL without an active Ed25519 key. */
  readonly addProof: <T extends object>(credential: T, now: number) => T & { readonly proof: Proof }
}
type Proof = {
  readonly type: 'DataIntegrityProof'
  readonly cryptosuite: 'eddsa-jcs-2022'
  readonly created: string
  readonly verificationMethod: string
  readonly proofPurpose: 'assertionMethod'
  readonly '@context'?: unknown
  readonly proofValue: string
}

export function createSigner({ did, keys }: { readonly did: string; readonly keys: readonly IssuerKey[] }): Signer {
  const jwsKey = activeKey(keys, 'ES256')
  const proofKey = activeKey(keys, 'Ed25519')

  return {
    forms: [
      ...(jwsKey === null ? [] : ['application/vc+jwt' as const]),
      ...(proofKey === null ? [] : ['application/vc' as const]),
    ],

    async signJwt(credential) {
      if (jwsKey === null) throw missing('ES256')
      return new CompactSign(Buffer.from(JSON.stringify(credential)))
        .setProtectedHeader({ alg: 'ES256', typ: 'vc+jwt', cty: 'vc', kid: keyIdOf(did, jwsKey.key) })
        .sign(jwsKey.privateKey)
    },

    addProof(credential, now) {
      if (proofKey === null) throw missing('Ed25519')
      const options = {
        type: 'DataIntegrityProof',
        cryptosuite: 'eddsa-jcs-2022',
        created: timeText(Math.floor(now / 1000)),
        verificationMethod: keyIdOf(did, proofKey.key),
        proofPurpose: 'assertionMethod',
        ...('@context' in credential && { '@context': credential['@context'] }),
      } as const
      const signature = sign(null, Buffer.concat([jcsHash(options), jcsHash(credential)]), proofKey.privateKey)
      return { ...credential, proof: { ...options, proofValue: base58Multibase(signature) } }
    },
  }
}

/**
 * What is signed of a passport: the same statements, but it ends after a day and names its status. UNTP 0.7.0 knows only one status with
 * a numeric index, W3C demands text and two purposes need two entries; the document follows W3C, so it does not name a schema it breaks.
 */
export function snapshotOf(
  passport: Passport,
  { now, status }: { readonly now: number; readonly status: readonly StatusEntry[] },
) {
  const { credentialSchema: _unsignedOnly, ...kept } = passport
  return {
    ...kept,
    description: `Signed passport (v1): a snapshot that ends at validUntil. ${scope}`,
    validUntil: timeText(Math.floor(now / 1000) + snapshotSeconds),
    credentialStatus: status,
  }
}

function activeKey(keys: readonly IssuerKey[], algorithm: Algorithm) {
  const key = keys.find((each) => each.status === 'active' && each.algorithm === algorithm)
  return key?.privateKey ? { key, privateKey: key.privateKey } : null
}

/** SHA-256 of the RFC 8785 form (VC-DI-EDDSA §3.3.3, §3.3.4). */
function jcsHash(value: object): Buffer {
  return createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest()
}

function missing(algorithm: Algorithm): ServiceError {
  return new ServiceError('INTERNAL', `There is no active ${algorithm} issuer key.`)
}
