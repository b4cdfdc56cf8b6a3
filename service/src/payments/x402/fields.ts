/** Fields of payments on the wire, which both schemes share. Hex and addresses become lower case. */
import { isAddress, type Hex } from '@touchstone/verdict'
import { z } from 'zod'

export const account = z.string().refine(isAddress).transform(toLower)

/** Accepts hex of exactly this many bytes. */
export function hexOfLength(length: number) {
  return hexText(new RegExp(`^0x[0-9a-fA-F]{${2 * length}}$`))
}

/** Accepts hex of one or more bytes: signatures of contracts have any length. */
export const anyBytes = hexText(/^0x(?:[0-9a-fA-F]{2})+$/)

/** Accepts a decimal string below `2 ** bits`, in the one way to write it. */
export function amountOf(bits: 128 | 256) {
  return z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,77})$/)
    .transform(BigInt)
    .refine((value) => value < 2n ** BigInt(bits))
}

function hexText(pattern: RegExp) {
  return z.string().regex(pattern).transform(toLower)
}

function toLower(text: string): Hex {
  return text.toLowerCase() as Hex
}
