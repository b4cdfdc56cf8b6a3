/** `/.well-known/did.json`: the did:web document with the issuer's keys and its resolver (did:web method; UNTP identity resolver). */
import { base58 } from '@scure/base'
import type { IssuerKey } from './signing/issuer-keys.ts'
import { linksetType } from './linkset.ts'

/** Returns `did:web:{host}`. A port is part of the name, its colon percent-encoded, as are brackets and colons of an IPv6 address. */
export function didOf(baseUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(baseUrl).host)}`
}

/** Returns the id of a verification method, as signatures name it. */
export function keyIdOf(did: string, { id }: Pick<IssuerKey, 'id'>): string {
  return `${did}#${id}`
}

type DidInput = Readonly<{ baseUrl: string; did: string; keys: readonly IssuerKey[] }>

/** Lists every key, because old signatures name old keys. A revoked key stays listed but has no `assertionMethod`. */
export function didDocument({ baseUrl, did, keys }: DidInput) {
  return {
    '@context': [
      'https://www.w3.org/ns/did/v1',
      ...(keys.some(isJsonWebKey) ? ['https://w3id.org/security/jwk/v1'] : []),
      ...(keys.every(isJsonWebKey) ? [] : ['https://w3id.org/security/multikey/v1']),
    ],
    id: did,
    ...(keys.length > 0 && { verificationMethod: keys.map((key) => verificationMethod(did, key)) }),
    assertionMethod: keys.filter(({ status }) => status !== 'revoked').map((key) => keyIdOf(did, key)),
    service: [
      {
        id: `${did}#untp:idr`,
        type: 'linkset',
        serviceEndpoint: {
          href: baseUrl,
          rel: ['linkset', 'untp:idr'],
          title: 'Identity Resolver Service',
          type: linksetType,
        },
      },
    ],
  }
}

function isJsonWebKey({ algorithm }: IssuerKey): boolean {
  return algorithm === 'ES256'
}

function verificationMethod(did: string, key: IssuerKey) {
  return {
    id: keyIdOf(did, key),
    type: isJsonWebKey(key) ? 'JsonWebKey' : 'Multikey',
    controller: did,
    ...(isJsonWebKey(key) ? { publicKeyJwk: key.publicJwk } : { publicKeyMultibase: ed25519Multikey(key.publicJwk.x) }),
    ...(key.revoked !== null && { revoked: key.revoked }),
  }
}

/**
 * Writes an Ed25519 public key as a Multikey. It is base58btc over the multicodec prefix ed01 and the key (Controlled Identifiers 1.0
 * §2.4).
 */
function ed25519Multikey(x: string): string {
  return `z${base58.encode(Buffer.concat([Buffer.of(0xed, 0x01), Buffer.from(x, 'base64url')]))}`
}
