/** The catalogue of `bench:growth`: which model a product is of, and what its metadata, item and tag are. */
import type { Hex } from '@touchstone/verdict'
import { type Model as Described, modelOf } from '../lib/models.ts'

export type Model = Described & { readonly gtin: string }

const productsPerModel = 50

/** Products of one model share a GTIN too. */
export function modelsOf(products: number): readonly Model[] {
  return Array.from({ length: Math.ceil(products / productsPerModel) }, (_, index) => ({
    ...modelOf(index),
    gtin: gtinOf(index),
  }))
}

/** Neighbours are of different models; the same in SQL is 1 + (i * 7) % models. */
export function modelOfProduct(models: readonly Model[], id: number): Model {
  return models[(id * 7) % models.length] as Model
}

/** Seven bytes that look drawn by lot, none twice; the same in SQL is `chipOf`. */
export function uidOf(id: number): Uint8Array {
  const number = (BigInt(id) * BigInt(chipStep)) % 2n ** 48n
  return Uint8Array.from(Buffer.from(`04${number.toString(16).padStart(12, '0')}`, 'hex'))
}

const chipStep = 366_503_875_925 // odd, so that no number comes twice; 10 million times it still fits a bigint
export const chipOf = `decode('04' || lpad(to_hex((i::bigint * ${chipStep}) % 281474976710656), 12, '0'), 'hex')`

/** Milliseconds of the first tap: within TAP_RETENTION_DAYS, after which the service would delete it. */
export const tapsBegan = Math.floor(Date.now() / 86_400_000 - 60) * 86_400_000

export const hexOf = (hash: string): Hex => `0x${hash}`

/** Returns a GTIN of the range that GS1 keeps for examples, with its check digit. */
function gtinOf(index: number): string {
  const digits = `0952${String(index).padStart(9, '0')}`
  const sum = Array.from(digits).reduce((total, digit, at) => total + Number(digit) * (at % 2 === 0 ? 3 : 1), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
