/**
 * The transactions of the facilitator's keys (spec §4.8): one row for each nonce, written before it is sent. What a process leaves
 * behind is sent again by another one, byte for byte or with higher fees, so that no nonce stays open.
 */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, hexToBytes, isRecent, numbers } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import { accountLock, lockStatement } from '../../db/locks.ts'
import type { BlockId } from '../../domain/chain.ts'
import type { PaymentScope } from '../holder.ts'
import type { PaymentKey } from '../key.ts'

/** `raw` is the newest signed transaction of this nonce, `hashes` those of all; the last one is the newest. */
export type Slot = {
  readonly pk: bigint
  readonly sender: Hex
  readonly nonce: number
  readonly raw: Hex
  readonly hashes: readonly Hex[]
}
export type Signed = { readonly raw: Hex; readonly hash: Hex }
/** `gasPrice` is in wei, as is `l1Fee`. A rollup takes `l1Fee` beside the gas, for the data that it writes to its base chain. */
export type MinedSlot = {
  readonly gasUsed: bigint
  readonly gasPrice: bigint
  readonly l1Fee: bigint
  readonly block: BlockId
}

export type NonceSlots = ReturnType<typeof createNonceSlots>

/** A provider may lag this far behind the block of our newest transaction. */
const lag = `interval '1 minute'`
/** Older blocks stay. The time is a condition so that an index is used. */
const isMinedLately = `state = 'mined' and mined_at > statement_timestamp() - interval '1 day'`
/** A transaction is followed as soon as its write is answered. One that is not after this time had no answer. */
const unanswered = `not ${isRecent('sent_at', "interval '10 s'")}`

export function createNonceSlots(
  database: Pick<Database, 'query' | 'transaction' | 'dialect'>,
  { chainId, asset, holder }: PaymentScope,
) {
  /** Returns the lowest free nonce of the account from `count` on. It stays free for others until the transaction of `sql` has ended. */
  async function lowestFree(sql: Sql, sender: Hex, count: number): Promise<number> {
    if (database.dialect !== 'pglite') await sql.query(lockStatement(accountLock(lockNumber(sender))))
    const taken = await sql.query<{ nonce: bigint }>(
      `select nonce from settlement where chain_id = $1 and sender = $2 and nonce >= $3
         and (state = 'pending' or (state = 'mined' and mined_at > statement_timestamp() - ${lag})) order by nonce`,
      [chainId, hexToBytes(sender), count],
    )
    const free = taken.findIndex((one, index) => Number(one.nonce) !== count + index)
    return count + (free === -1 ? taken.length : free)
  }

  async function store(
    sql: Sql,
    { sender, nonce, members }: Pick<Slot, 'sender' | 'nonce'> & { readonly members: readonly PaymentKey[] },
    { raw, hash }: Signed,
  ): Promise<Slot> {
    const [made] = await sql.query<{ pk: bigint }>(
      `with made as (insert into settlement (chain_id, sender, nonce, holder, raw, hashes)
         values ($1, $2, $3, ${holder.number}, $4, array[$5::bytea]) returning pk),
       linked as (update payment p set settlement = made.pk, tx_hash = $5 from made,
         unnest($6::bytea[], $7::bytea[]) m(payer, nonce)
         where p.chain_id = $1 and p.asset = $8 and p.payer = m.payer and p.nonce = m.nonce and p.state = 'settling')
       select pk from made`,
      [
        chainId,
        hexToBytes(sender),
        nonce,
        hexToBytes(raw),
        hexToBytes(hash),
        bytes(members.map(({ payer }) => payer)),
        bytes(members.map((member) => member.nonce)),
        hexToBytes(asset),
      ],
    )
    if (made === undefined) throw new Error('The settlement was not stored.')
    return { pk: made.pk, sender, nonce, raw, hashes: [hash] }
  }

  async function select(where: string, values: readonly unknown[] = []): Promise<Slot[]> {
    const text = `select pk, sender, nonce, raw, hashes from settlement s where chain_id = $1 and ${where}`
    return (await database.query<Row>(text, [chainId, ...values])).map(parseSlot)
  }

  return {
    /**
     * Assigns the lowest free nonce of the account from `count` on, and stores what `sign` makes of it. Both are in one transaction under
     * the account's lock. `members` are the payments that it settles.
     */
    async assign(
      { sender, count, members }: Pick<Slot, 'sender'> & { count: number; members: readonly PaymentKey[] },
      sign: (nonce: number) => Promise<Signed>,
    ): Promise<Slot> {
      return database.transaction(async (sql) => {
        const nonce = await lowestFree(sql, sender, count)
        return store(sql, { sender, nonce, members }, await sign(nonce))
      })
    },

    /** Assigns this nonce to a transaction that settles nothing. Returns undefined where another one has it, e.g. of a living process. */
    async fill(
      { sender, nonce }: Pick<Slot, 'sender' | 'nonce'>,
      sign: () => Promise<Signed>,
    ): Promise<Slot | undefined> {
      return database.transaction(async (sql) => {
        if ((await lowestFree(sql, sender, nonce)) !== nonce) return undefined
        return store(sql, { sender, nonce, members: [] }, await sign())
      })
    },

    /** Returns whether a transaction may still be mined. */
    async isPending(pk: bigint): Promise<boolean> {
      const rows = await database.query(`select from settlement where pk = $1 and state = 'pending'`, [pk])
      return rows.length > 0
    },

    /** Stores another transaction for the same nonce. */
    async replace(slot: Slot, { raw, hash }: Signed): Promise<Slot> {
      await database.query(
        `with replaced as (update settlement set raw = $2, hashes = hashes || $3::bytea, sent_at = clock_timestamp()
           where pk = $1 and state = 'pending')
         update payment set tx_hash = $3 where settlement = $1 and state = 'settling'`,
        [slot.pk, hexToBytes(raw), hexToBytes(hash)],
      )
      return { ...slot, raw, hashes: [...slot.hashes, hash] }
    },

    /** Notes where a transaction was mined, also one that was given up. */
    async mined(slot: Slot, found: MinedSlot): Promise<void> {
      await database.query(
        `update settlement set state = 'mined', ${place}, mined_at = clock_timestamp() where pk = $1 and state in ('pending', 'lost')`,
        placed(slot, found),
      )
    },

    /** Returns the newest transactions that count as lost: those of the last two hours, and older ones that have paid. */
    lostLately: (): Promise<Slot[]> =>
      select(`state = 'lost' and (sent_at > statement_timestamp() - interval '2 hours' or exists (select from payment p
        where p.state = 'done' and p.settled_at is not null and p.tx_hash = any(s.hashes))) order by sent_at desc limit 100`),

    /** Returns the transactions that were mined in a block. */
    minedIn: ({ hash }: BlockId): Promise<Slot[]> => select(`block_hash = $2 and ${isMinedLately}`, [hexToBytes(hash)]),

    /** Moves a mined transaction to the block that a reorganisation has put it into. */
    async moved(slot: Slot, found: MinedSlot): Promise<void> {
      await database.query(`update settlement set ${place} where pk = $1 and state = 'mined'`, placed(slot, found))
    },

    /** Another transaction has the nonce of this one. */
    async lost({ pk }: Slot): Promise<void> {
      await database.query(`update settlement set state = 'lost' where pk = $1 and state = 'pending'`, [pk])
    },

    /** Gives transactions to whichever process adopts them first. */
    async release(left: readonly Slot[]): Promise<void> {
      if (left.length > 0)
        await database.query(`update settlement set holder = 0 where pk = any($1::bigint[])`, [
          numbers(left.map(({ pk }) => pk)),
        ])
    },

    /** Gives the nonces of a block free that is no longer in the chain, without those of `unsure`. */
    async orphaned({ hash }: BlockId, unsure: readonly Slot[]): Promise<void> {
      await database.query(
        `update settlement set state = 'lost' where block_hash = $1 and chain_id = $2 and ${isMinedLately} and pk <> all($3::bigint[])`,
        [hexToBytes(hash), chainId, numbers(unsure.map(({ pk }) => pk))],
      )
    },

    /**
     * Takes over the transactions of these accounts that no living process watches. `validBefore` is the latest of their unfinished
     * payments, 0 where there is none. Those of this process are watched where `followed` has them.
     */
    async adopt(
      senders: readonly Hex[],
      followed: readonly bigint[],
    ): Promise<(Slot & { readonly validBefore: bigint })[]> {
      const rows = await database.query<Row & { readonly validBefore: string }>(
        `with adopted as (update settlement set holder = ${holder.number}, sent_at = clock_timestamp()
           where chain_id = $1 and sender = any($2::bytea[]) and state = 'pending'
             and (not ${holder.isAlive} or holder = ${holder.number} and pk <> all($3::bigint[]) and ${unanswered})
           returning pk, sender, nonce, raw, hashes)
         select a.pk, a.sender, a.nonce, a.raw, a.hashes, coalesce(max(p.valid_before), 0)::text as "validBefore"
         from adopted a left join payment p on p.settlement = a.pk and p.state = 'settling' group by 1, 2, 3, 4, 5 order by a.nonce`,
        [chainId, bytes(senders), numbers(followed)],
      )
      return rows.map((row) => ({ ...parseSlot(row), validBefore: BigInt(row.validBefore) }))
    },
  }
}

type Row = {
  readonly pk: bigint
  readonly sender: Uint8Array
  readonly nonce: bigint
  readonly raw: Uint8Array
  readonly hashes: readonly Uint8Array[]
}

function parseSlot({ pk, sender, nonce, raw, hashes }: Row): Slot {
  return { pk, sender: bytesToHex(sender), nonce: Number(nonce), raw: bytesToHex(raw), hashes: hashes.map(bytesToHex) }
}

/** SQL that sets where a transaction was mined and what it cost; the values of its parameters. */
const place = `gas_used = $2, gas_price = $3::numeric, block_number = $4, block_hash = $5, l1_fee = $6::numeric`
function placed({ pk }: Slot, { gasUsed, gasPrice, l1Fee, block }: MinedSlot): unknown[] {
  return [pk, gasUsed, gasPrice.toString(), block.number, hexToBytes(block.hash), l1Fee.toString()]
}

function lockNumber(address: Hex): number {
  return createHash('sha256').update(address.toLowerCase()).digest().readInt32BE(0)
}
