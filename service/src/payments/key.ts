/** The name by which a payment is known: its authorization. */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex } from '../db/columns.ts'

/** An EIP-3009 authorization of one token; both in lower case. */
export type PaymentKey = { readonly payer: Hex; readonly nonce: Hex }

/** Returns the name of a payment in maps of this process. */
export function paymentName({ payer, nonce }: PaymentKey): string {
  return `${payer}${nonce}`
}

/** The columns of a payment that hold bytes. */
type HexColumns = PaymentKey & { readonly transaction: Hex | null; readonly channel: Hex | null }
/** A record of a payment as PostgreSQL returns it. */
export type Stored<Row extends HexColumns> = Omit<Row, keyof HexColumns> & {
  readonly [Column in keyof HexColumns]: Row[Column] extends Hex ? Uint8Array : Uint8Array | null
}

/** Converts the bytes of a record to hex text. */
export function withHexColumns<Row extends Stored<HexColumns>>({ payer, nonce, transaction, channel, ...row }: Row) {
  return {
    ...row,
    payer: bytesToHex(payer),
    nonce: bytesToHex(nonce),
    transaction: transaction && bytesToHex(transaction),
    channel: channel && bytesToHex(channel),
  }
}
