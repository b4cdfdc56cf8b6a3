/** Keys of an issuer, and the documents by which the libraries of others check its signatures. */
import assert from 'node:assert/strict'
import { DataIntegrityProof } from '@digitalbazaar/data-integrity'
import { createVerifyCryptosuite } from '@digitalbazaar/eddsa-jcs-2022-cryptosuite'
import { didDocument } from '../../../src/passport/did-document.ts'
import {
  changeIssuerKeys,
  parseIssuerKeys,
  type IssuerKey,
  type IssuerKeyChange,
} from '../../../src/passport/signing/issuer-keys.ts'
import { baseUrl, did } from './fixtures.ts'

export function keysOf(text: string | null): readonly IssuerKey[] {
  const read = parseIssuerKeys(text ?? '')
  assert.ok(read.ok, read.ok ? '' : read.reason)
  return read.keys
}

/** Returns the key file after a change that is accepted. */
export async function changed(text: string, change: IssuerKeyChange): Promise<string> {
  const after = await changeIssuerKeys(text, change)
  assert.ok(typeof after === 'string', JSON.stringify(after))
  return after
}

/** The suite of the library that checks Data Integrity proofs. */
export const proofSuite = () => new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() })

/** A verification method as its URL answers. */
export const methodDocument = (method: object): object => ({
  '@context': 'https://w3id.org/security/multikey/v1',
  ...method,
})

/** The documents that a verifier would fetch for `did`. */
export function documentsOf(keys: readonly IssuerKey[]): Record<string, object> {
  const document = didDocument({ baseUrl, did, keys })
  const methods = (document.verificationMethod ?? []).map((method) => [method.id, methodDocument(method)])
  return { [did]: document, ...Object.fromEntries(methods) }
}
