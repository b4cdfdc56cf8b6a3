/** What the writer needs of a store. The store's own operations fit it; the chain part does not know them. */
import type { Hex } from '@touchstone/verdict'
import type { SignedTransaction } from './writer-transaction.ts'

/** `outcome` is the writer's own text, present once settled. `ageMs`: time since the newest signature. */
export type StoredOperation = SignedTransaction &
  Readonly<{
    key: string
    requestHash: Hex
    signer: Hex
    nonce: bigint
    status: 'PENDING' | 'CONFIRMED' | 'FAILED'
    outcome: string | null
    ageMs: number
  }>

export type OperationStore = Readonly<{
  find: (key: string) => Promise<StoredOperation | undefined>
  /** Durable before it resolves. `sign` gets the first nonce from `fromNonce` on that no stored operation of the signer has. */
  append: (
    request: Readonly<{ key: string; requestHash: Hex; kind: string; signer: Hex; fromNonce: bigint }>,
    sign: (nonce: bigint) => Promise<SignedTransaction>,
  ) => Promise<Readonly<{ operation: StoredOperation; added: boolean }>>
  replace: (txHash: Hex, by: SignedTransaction) => Promise<boolean>
  hashes: (operation: Pick<StoredOperation, 'key' | 'txHash'>) => Promise<readonly Hex[]>
  settle: (key: string, status: 'CONFIRMED' | 'FAILED', outcome: string) => Promise<void>
  reopen: (signer: Hex, fromNonce: bigint, settledMs?: number) => Promise<void>
  pending: (signer: Hex, fromNonce?: bigint) => Promise<readonly StoredOperation[]>
}>
