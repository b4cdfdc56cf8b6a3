/** The item of `service/test/data/passport/sample`, as input of the passport, and variations of it. */
import { readFileSync } from 'node:fs'
import { lifecycleStates, type Hex, type StateCode, type Verdict } from '@touchstone/verdict'
import type { PassportInput } from '../../../src/passport/credential.ts'
import { canonicalMetadata } from '../../../src/assets/metadata.ts'
import { passportMetadata, type PassportMetadata } from '../../../src/passport/metadata.ts'

export const baseUrl = 'https://verify.example'
export const did = 'did:web:verify.example'
/** A moment shortly after the sample's block. */
export const now = Date.parse('2026-11-20T09:30:20Z')
export const sampleHash: Hex = '0x16b86e04e4c0f92dbda3ae9b177236f534e9a95f2901863ebe3b822f9fbca4c6'

/** The text of a file below `service/test/data/passport/`. */
export function dataText(path: string): string {
  return readFileSync(new URL(`../../data/passport/${path}`, import.meta.url), 'utf8')
}

/** The parsed JSON of such a file; the caller names what it reads of it. */
export function dataOf<T>(path: string): T {
  return JSON.parse(dataText(path)) as T
}

const sampleMetadata: PassportMetadata = matching(dataText('sample/sample-metadata.json'))

/** Metadata that was registered and is what the chain says. */
export function matching(json: string): PassportMetadata {
  const registered = canonicalMetadata(JSON.parse(json))
  if (!registered.ok) throw new Error(`the fixture is rejected: ${registered.message}`)
  return passportMetadata(registered.hash, registered.body)
}

export function sampleInput(changes: Partial<PassportInput> = {}): PassportInput {
  return {
    baseUrl,
    issuer: { name: 'Example Verification Service', did },
    software: {
      id: 'https://touchstone.example/releases/1.0.0',
      name: 'Touchstone',
      version: '1.0.0',
      vendor: { id: 'https://touchstone.example', name: 'Touchstone contributors' },
    },
    verdict: sampleVerdict(),
    item: { gtin: '09520123456788', serial: 'HFJ-000417' },
    tapCounter: 17,
    timestamp: 1_795_167_012n,
    metadata: sampleMetadata,
    now,
    ...changes,
  }
}

/** The verdict on a token in a state. */
export function sampleVerdict(state: StateCode = 4, token_id = '1042'): Verdict {
  return {
    version: '1',
    token_id,
    authentic: state === 3 || state === 4,
    state: lifecycleStates[state],
    state_code: state,
    flagged: state === 5,
    owner_commitment: state < 4 ? null : `0x${'c0'.repeat(32)}`,
    chainRef: {
      chain_id: 84532,
      contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      token_id,
      block_number: 31_337_042,
      block_hash: `0x${'ab'.repeat(32)}`,
    },
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
}

/** Every kind of passport there is: six states, with and without a GTIN, with each outcome of the metadata. */
export const everyInput: readonly (readonly [string, PassportInput])[] = ([1, 2, 3, 4, 5, 6] as const).flatMap(
  (state) =>
    [sampleInput().item, null].flatMap((item) =>
      (
        [
          sampleMetadata,
          { status: 'mismatch', onChainHash: sampleHash },
          { status: 'none', onChainHash: sampleHash },
        ] as const
      ).map(
        (metadata) =>
          [
            `${lifecycleStates[state]}, ${item === null ? 'token' : 'GTIN'}, metadata ${metadata.status}`,
            sampleInput({ verdict: sampleVerdict(state), item, metadata }),
          ] as const,
      ),
    ),
)
