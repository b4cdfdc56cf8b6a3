/** For tests: the parties of transfers, and their steps as mutations. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import type { WriteRequest } from '../../../src/chain/transactions/calls.ts'
import { fieldsOf, type MutationWorld, type Payload } from '../graphql/mutations.ts'
import { alice, bob, hash, minted } from './writer-world.ts'

type Account = typeof alice

/** Neither owner nor recipient. */
export const [carol] = publishedAccounts(5).slice(4) as [Account]

export const hours = (n: number): number => n * 3_600
export const selection = 'txHash transfer { id status from { address } to { address } txHash expiresAt }'
const typedSelection = 'typedData deadline nonce transferId'

export const transferOf = ({ transfer }: Payload) => transfer as Record<string, unknown> & { id: string }

export function refusalOf(payload: Payload, field: string, message: RegExp): void {
  assert.equal(payload.success, false)
  assert.deepEqual(fieldsOf(payload), [field])
  assert.match(payload.errors[0]?.message ?? '', message)
}

/** `worldOf` is asked when a step is made. */
export function transferSteps(worldOf: () => MutationWorld) {
  let count = 0
  const ask = (field: string, fields: string, input: object) => worldOf().ask(field, fields, input)
  const typedData = (input: object) => ask('transferTypedData', typedSelection, input)

  const done = async (request: WriteRequest) =>
    minted(await worldOf().writer.write(request, { idempotencyKey: `test-${(count += 1)}` }))
  /** A new product of this owner. */
  async function ownedBy(to: Hex): Promise<string> {
    const [tokenId = 0n] = await done({ kind: 'mint', to, metadataHash: hash(1) })
    return tokenId.toString()
  }
  /** As a wallet does: it signs the JSON that it is given. */
  async function sign(input: object, by: Account): Promise<{ signature: Hex; deadline: string }> {
    const given = await typedData(input)
    assert.deepEqual(given.errors, [])
    const signature = await by.signTypedData(given['typedData'] as never)
    return { signature, deadline: String(given['deadline']) }
  }
  /** The input of an offer, signed. */
  async function offer(productId: string, { by = alice, to = bob.address as Hex, message = 'Yours now.' } = {}) {
    const values = { productId, toAddress: to, message }
    return { ...values, ...(await sign(values, by)) }
  }
  return {
    typedData,
    done,
    ownedBy,
    sign,
    offer,
    initiate: (input: object) => ask('initiateTransfer', selection, input),
    accept: (input: object) => ask('acceptTransfer', selection, input),
    cancel: (input: object) => ask('cancelTransfer', selection, input),
    invalidate: (input: object) => ask('invalidateNonce', 'txHash product { id }', input),
    owner: async (productId: string) => (await worldOf().recordOf(BigInt(productId))).owner,
  }
}
