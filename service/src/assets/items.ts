/**
 * The items of tokens (spec §4.5, §4.6). A token has at most one GTIN and serial, and a GTIN and serial name one token. An item may be
 * registered as soon as its token is minted, before it carries a tag. The constraints of the table enforce this.
 */
import { numbers, texts } from '../db/columns.ts'
import type { Sql } from '../db/database.ts'
import type { ItemKey } from '../domain/gs1/serial.ts'

/** `created` is false when the token was this item before. A rejected registration changed nothing. */
type Registration =
  | { readonly ok: true; readonly created: boolean }
  | { readonly ok: false; readonly because: ItemRefusal; readonly message: string }

type ItemRefusal = keyof typeof itemRefusals

/** The reasons why an item is rejected, in one sentence each. */
export const itemRefusals = {
  not_gtin: 'The GTIN must have 14 digits with a right check digit, such as 09506000134352.',
  not_serial:
    'The serial must have 1 to 20 letters, digits or signs of GS1 (CSET 82), and be neither . nor .. , such as M41-002208.',
  not_token: 'The token id must be from 0 to 2^256-1.',
  token_taken: 'This token is registered as another item.',
  item_taken: 'Another token is registered under this GTIN and serial.',
} as const

/** By the violated constraint of the table `item`; the function raises that of the key by its name. */
const refusalOfConstraint: Readonly<Record<string, ItemRefusal>> = {
  item_gtin: 'not_gtin',
  item_serial: 'not_serial',
  item_token: 'not_token',
  item_key: 'item_taken',
}

export function itemStore(sql: Sql) {
  async function itemOfToken(tokenId: bigint): Promise<ItemKey | null> {
    const statement = 'select gtin, serial from item where token_id = $1::numeric'
    const [row] = await sql.query<ItemKey>(statement, [tokenId.toString()])
    return row ?? null
  }

  return {
    /** Registers a token as an item for good; the same again is no change. */
    async register({ tokenId, gtin, serial }: ItemKey & { readonly tokenId: bigint }): Promise<Registration> {
      // Text that is not ASCII is no serial, and the database rejects some of it as a parameter.
      if (!/^[\x20-\x7e]*$/.test(serial)) return rejected('not_serial')
      if (!/^[0-9]*$/.test(gtin)) return rejected('not_gtin')
      if (tokenId < 0n || tokenId >= 2n ** 256n) return rejected('not_token')
      const values = [tokenId.toString(), gtin, serial]
      try {
        const [row] = await sql.query<{ created: boolean }>(registerStatement, values)
        if (row?.created === true) return { ok: true, created: true }
      } catch (error) {
        const because = itemRefusalOf(error)
        if (because === undefined) throw error
        return rejected(because)
      }
      const own = await itemOfToken(tokenId)
      if (own === null) return rejected('item_taken')
      return own.gtin === gtin && own.serial === serial ? { ok: true, created: false } : rejected('token_taken')
    },

    itemOfToken,

    /** Returns the items of those tokens that have one. */
    async itemsOfTokens(tokenIds: readonly bigint[]): Promise<ReadonlyMap<bigint, ItemKey>> {
      const rows = await sql.query<ItemKey & { token_id: string }>(itemsStatement, [numbers(tokenIds)])
      return new Map(rows.map(({ token_id, gtin, serial }) => [BigInt(token_id), { gtin, serial }]))
    },

    async tokenOfItem({ gtin, serial }: ItemKey): Promise<bigint | null> {
      const [row] = await sql.query<{ token_id: string }>(tokenStatement, [gtin, serial])
      return row === undefined ? null : BigInt(row.token_id)
    },

    /** Returns the tokens of items, in their order; null for none, and where there is no item. */
    async tokensOfItems(keys: readonly (ItemKey | undefined)[]): Promise<readonly (bigint | null)[]> {
      const nameOf = (key: ItemKey | undefined) => `${key?.gtin} ${key?.serial}`
      const wanted = keys.filter((key) => key !== undefined)
      const values = [texts(wanted.map(({ gtin }) => gtin)), texts(wanted.map(({ serial }) => serial))]
      const rows = await sql.query<ItemKey & { token_id: string }>(tokensStatement, values)
      const tokens = new Map(rows.map((row) => [nameOf(row), BigInt(row.token_id)]))
      return keys.map((key) => tokens.get(nameOf(key)) ?? null)
    },

    /** Returns up to `most` items with this serial, of every class: a serial is unique only below its GTIN. */
    async itemsOfSerial(serial: string, most: number): Promise<readonly (ItemKey & { readonly tokenId: bigint })[]> {
      const rows = await sql.query<{ gtin: string; token_id: string }>(serialStatement, [serial, most])
      return rows.map(({ gtin, token_id }) => ({ gtin, serial, tokenId: BigInt(token_id) }))
    },

    async hasGtin(gtin: string): Promise<boolean> {
      return (await sql.query('select 1 from token_of_item where gtin = $1 limit 1', [gtin])).length > 0
    },
  }
}

export type ItemStore = ReturnType<typeof itemStore>

/** Returns the reason that a database error stands for: a violated check (23514) or key (23505) of the table. */
export function itemRefusalOf(error: unknown): ItemRefusal | undefined {
  const { code = '', constraint, message = '' } = error as { code?: string; constraint?: string; message?: string }
  if (!['23514', '23505'].includes(code)) return undefined
  // An error of a worker of Citus has the name of the constraint in its message alone.
  return refusalOfConstraint[constraint ?? /constraint "(\w+)"/.exec(message)?.[1] ?? '']
}

function rejected(because: ItemRefusal): Registration {
  return { ok: false, because, message: itemRefusals[because] }
}

const registerStatement = 'select register_item($1::numeric, $2, $3, false) as created'
const tokenStatement = 'select token_id from token_of_item where gtin = $1 and serial = $2'
const itemsStatement = 'select token_id, gtin, serial from item where token_id = any($1::numeric[])'
const tokensStatement = `select gtin, serial, token_id from token_of_item
  where serial = any($2::text[]) and (gtin, serial) in (select * from unnest($1::text[], $2::text[]))`
const serialStatement = 'select gtin, token_id from token_of_item where serial = $1 order by gtin limit $2::int'
