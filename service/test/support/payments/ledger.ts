/** Tests of the ledger open it in a database of its own, and take payments in as buyers present them. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { hexToBytes } from '../../../src/db/columns.ts'
import { openHolder, type PaymentHolder } from '../../../src/payments/holder.ts'
import type { PaymentKey } from '../../../src/payments/key.ts'
import type { NewPayment } from '../../../src/payments/ledger/intake.ts'
import { createPaymentLedger, type PaymentLedger } from '../../../src/payments/ledger/ledger.ts'
import type { TestDatabase } from '../database/databases.ts'

export type OpenLedger = Awaited<ReturnType<typeof openLedger>>

/** Opens the ledger of this process in a new database. `ledgerOf` opens that of another process there. */
export async function openLedger(open: TestDatabase['open']) {
  const database = await open()
  const holder = await openHolder(database)
  const asset = randomHex(20)
  let transactions = 0
  const ledgerOf = (of = holder) => createPaymentLedger(database, { chainId: 84532, asset, holder: of })
  return {
    database,
    holder,
    asset,
    ledgerOf,
    ledger: ledgerOf(),
    /** Sets columns of a payment, without the ledger. */
    change: ({ nonce }: PaymentKey, set: string) =>
      database.query(`update payment set ${set} where nonce = $1`, [hexToBytes(nonce)]),
    /** Stores a transaction under a nonce of its own, and returns its row. Left out: it was mined now, at a price of 1 wei. */
    async transaction(
      hash: Hex,
      { state = 'mined', ago = '0 s', block = null as Hex | null, chainId = 84532, gas = 1 } = {},
    ): Promise<bigint | undefined> {
      const [row] = await database.query<{ pk: bigint }>(
        `insert into settlement (chain_id, sender, nonce, state, holder, raw, hashes, mined_at, gas_used, gas_price, block_number, block_hash)
         values ($1, decode(repeat('02', 20), 'hex'), $2, $3, 0, '', array[$4::bytea], clock_timestamp() - $5::interval, $6, 1, 9, $7) returning pk`,
        [chainId, (transactions += 1), state, hexToBytes(hash), ago, gas, block && hexToBytes(block)],
      )
      return row?.pk
    },
    async close() {
      await holder[Symbol.asyncDispose]()
      await database.close()
    },
  }
}

export const randomHex = (bytes: number): Hex => `0x${randomBytes(bytes).toString('hex')}`

/** A process that has ended. */
export const deadProcess: PaymentHolder = { number: 1, isAlive: 'false', [Symbol.asyncDispose]: async () => {} }

/** A transfer that was mined, with the answer to its payment. */
export const paid = (answer = '{"a":1}') => ({
  transaction: randomHex(32),
  answer,
  block: { number: 9n, hash: randomHex(32) },
})

export function newPayment(): NewPayment {
  const [payer, nonce] = [randomHex(20), randomHex(32)]
  const payment = {
    from: payer,
    nonce,
    to: randomHex(20),
    value: 10n,
    validAfter: 0n,
    validBefore: 2n ** 256n - 1n,
    signature: randomHex(65),
  }
  return { payer, nonce, tokenId: 7n, requestHash: randomHex(32).slice(2), payment, proof: '{"a":1}', fromBlock: 7n }
}

export async function takeIn(ledger: Pick<PaymentLedger, 'insert'>): Promise<NewPayment> {
  const payment = newPayment()
  assert.ok(await ledger.insert(payment))
  return payment
}
