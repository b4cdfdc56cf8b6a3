/**
 * The ledger of payment channels: a row for each, with what the chain holds and what was sold. A sale is one statement, which raises the sum of
 * the channel from exactly the voucher's base and stores the purchase with its proof: after a crash there is all of it or nothing.
 */
import type { Hex } from '@touchstone/verdict'
import { bytes, bytesToHex, hexToBytes, isRecent, numbers } from '../../db/columns.ts'
import type { Database } from '../../db/database.ts'
import type { PaymentScope } from '../holder.ts'
import { formatPayload } from '../ledger/table.ts'
import type { ChannelClaim, ChannelConfig } from './channel.ts'
import type { PresentedVoucher } from './presented.ts'
import type { ChannelState } from './state.ts'

/**
 * A channel. `charged`: the sum of all sales; `signature`: that of the voucher over it, null where the chain had more than the ledger. Amounts are
 * in the token's smallest units. `isFresh`: the chain was read within ten minutes.
 */
export type Channel = ChannelState & {
  readonly id: Hex
  readonly config: ChannelConfig
  readonly charged: bigint
  readonly signature: Hex | null
  readonly isFresh: boolean
}

/** A channel with its state on the chain. */
export type ChannelRead = Pick<Channel, 'id' | 'config'> & { readonly state: ChannelState }

/** `answer`: the body of the response, `fromBlock`: the block before the sale. */
export type Sale = {
  readonly voucher: PresentedVoucher
  readonly price: bigint
  readonly requestHash: string
  readonly tokenId: bigint
  readonly answer: string
  readonly fromBlock: bigint
}

/** Amounts in the token's smallest units, over all channels. `oldestSeconds`: the age of the oldest purchase that is not claimed, else 0. */
export type ChannelFigures = {
  readonly channels: number
  readonly balance: number
  readonly unclaimed: number
  /** Not claimed and no longer covered by the deposit. */
  readonly uncovered: number
  readonly oldestSeconds: number
}

export type ChannelStore = ReturnType<typeof createChannelStore>

/**
 * A voucher reserves nothing on the chain. So a sale relies on a state that is at most this old. It is a small part of any withdrawal
 * delay.
 */
const fresh = isRecent('read_at', `interval '10 minutes'`)
/** A block may have a lower number than one of a moment ago, after a reorganisation. An older answer of a provider must not count. */
const isNewer = `(channel.read_block <= excluded.read_block or channel.read_at < statement_timestamp() - interval '1 minute')`
/** SQL for the sum of all sales. The chain has more where this table has lost some. */
const base = 'greatest(charged, claimed)'
const columns = `id, payer, payer_authorizer as "payerAuthorizer", receiver, receiver_authorizer as "receiverAuthorizer", asset as token,
  withdraw_delay as "withdrawDelay", salt, balance::text, claimed::text, withdrawal::text, read_block as block, ${base}::text as charged,
  case when claimed <= charged then signature end as signature, ${fresh} as "isFresh"`

/** SQL for the sum that can be claimed, and a condition: only what the deposit still covers. */
const claimable = 'least(charged, balance) - claimed'
const isClaimable = 'least(charged, balance) > claimed'
/**
 * SQL for a condition: the channel has something to claim, or only one answer of a provider denies it. A second answer that all is claimed
 * counts, half a minute after the first. A channel whose deposit seems to be gone is read for two days, because a withdrawal takes one.
 */
const isOpen = `(charged > claimed and (${isClaimable} or unclaimed_since > statement_timestamp() - interval '2 days')
  or charged <= claimed and unclaimed_since is not null)`

/** Keeps the channels in one token, whose address is `asset`. */
export function createChannelStore(database: Pick<Database, 'query'>, { chainId, asset, holder }: PaymentScope) {
  const run = <R>(text: string, values: readonly unknown[] = []) =>
    database.query<R>(text, [chainId, hexToBytes(asset), ...values])
  const ours = 'chain_id = $1 and asset = $2'

  return {
    async find(id: Hex): Promise<Channel | undefined> {
      const [row] = await run<Row>(`select ${columns} from channel where ${ours} and id = $3`, [hexToBytes(id)])
      return row && toChannel(row)
    },

    /**
     * Stores what the chain holds of different channels until the next answer. A wrong one changes nothing that was sold. Returns the
     * channels in their order, undefined for one of another token.
     */
    async refresh(reads: readonly ChannelRead[]): Promise<(Channel | undefined)[]> {
      const configs = reads.map(({ config }) => config)
      const states = reads.map(({ state }) => state)
      // Locks are taken in the order of the ids.
      const rows = await run<Row>(
        `with given as (select * from unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bytea[],
             $10::numeric[], $11::numeric[], $12::numeric[], $13::bigint[])
             g(id, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay, salt, balance, claimed, withdrawal, block)),
         read as (insert into channel as channel (chain_id, asset, id, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay,
             salt, balance, claimed, withdrawal, read_block, charged)
           select $1, $2, g.*, 0 from given g order by g.id
           on conflict (id) do update set balance = excluded.balance, claimed = excluded.claimed, withdrawal = excluded.withdrawal,
             read_block = excluded.read_block, read_at = clock_timestamp(),
             unclaimed_since = case
               when channel.charged <= excluded.claimed and channel.charged > channel.claimed then clock_timestamp()
               when channel.charged <= excluded.claimed and channel.read_at < statement_timestamp() - interval '30 seconds' then null
               when channel.charged <= excluded.claimed then channel.unclaimed_since
               when channel.claimed < excluded.claimed or channel.unclaimed_since is null then clock_timestamp() else channel.unclaimed_since end
           where ${isNewer} returning *)
         select ${columns} from read union all
         select ${columns} from channel where ${ours} and id in (select id from given except select id from read)`,
        [
          bytes(reads.map(({ id }) => id)),
          bytes(configs.map(({ payer }) => payer)),
          bytes(configs.map(({ payerAuthorizer }) => payerAuthorizer)),
          bytes(configs.map(({ receiver }) => receiver)),
          bytes(configs.map(({ receiverAuthorizer }) => receiverAuthorizer)),
          numbers(configs.map(({ withdrawDelay }) => withdrawDelay)),
          bytes(configs.map(({ salt }) => salt)),
          numbers(states.map(({ balance }) => balance)),
          numbers(states.map(({ claimed }) => claimed)),
          numbers(states.map(({ withdrawal }) => withdrawal)),
          numbers(states.map(({ block }) => block)),
        ],
      )
      const found = new Map(rows.map((row) => [bytesToHex(row.id), toChannel(row)]))
      return reads.map(({ id }) => found.get(id))
    },

    /**
     * Sells: raises the channel's sum to that of the voucher and stores the purchase. Returns false when the sum is not the voucher's base any
     * more, the deposit does not cover it, the state is too old, or the buyer's identifier is bound; then nothing has changed. The proof counts
     * as not delivered once this process has ended, unless `delivered` of the payments' ledger follows.
     */
    async sell({ voucher, price, requestHash, tokenId, answer, fromBlock }: Sale): Promise<boolean> {
      const { config, cumulative, signature, channelId, key, identifier = null } = voucher
      const payload = formatPayload({
        from: key.payer,
        to: config.receiver,
        value: cumulative,
        validAfter: 0n,
        validBefore: 0n,
        nonce: key.nonce,
        signature,
      })
      // The lock comes first: a statement that waited for it checks the sum again.
      const rows = await run(
        `with free as (select id from channel where ${ours} and id = $3 and ${base} = $4::numeric - $5::numeric
             and $4::numeric <= balance - withdrawal and ${fresh} for update),
         named as (insert into payment_identifier (chain_id, asset, payer, id, nonce) select $1, $2, $7, $14::text, $8 from free
             where $14::text is not null on conflict do nothing returning nonce),
         sold as (update channel c set charged = $4::numeric, signature = $6,
             unclaimed_since = coalesce(c.unclaimed_since, clock_timestamp())
             from free where c.id = free.id and ($14::text is null or exists (select from named)) returning c.id)
         insert into payment (chain_id, asset, payer, nonce, channel, kind, state, amount, payload, request_hash, token_id, answer, proof,
             from_block, valid_before, settled_at, undelivered, holder)
         select $1, $2, $7, $8, id, 'voucher', 'done', $5::numeric, $9, $10, $11::numeric, $12, '', $13, 0, clock_timestamp(), true,
           ${holder.number} from sold
         returning pk`,
        [
          hexToBytes(channelId),
          cumulative.toString(),
          price.toString(),
          hexToBytes(signature),
          hexToBytes(key.payer),
          hexToBytes(key.nonce),
          payload,
          hexToBytes(`0x${requestHash}`),
          tokenId.toString(),
          answer,
          fromBlock,
          identifier,
        ],
      )
      return rows.length > 0
    },

    /** Returns the unclaimed sum (in the token's smallest units), the age of its oldest purchase, and how many channels to read. */
    async unclaimed(): Promise<{ readonly units: bigint; readonly seconds: number; readonly channels: number }> {
      const [row] = await run<{ units: string; seconds: number; channels: number }>(
        `select coalesce(sum(${claimable}) filter (where ${isClaimable}), 0)::text as units, count(*)::int as channels,
           coalesce(extract(epoch from clock_timestamp() - min(unclaimed_since) filter (where ${isClaimable})), 0)::float8 as seconds
         from channel where ${ours} and ${isOpen}`,
      )
      return { units: BigInt(row?.units ?? 0), seconds: row?.seconds ?? 0, channels: row?.channels ?? 0 }
    },

    /** Takes channels to read that no other living process claims. Those with something to claim come first, and of them the oldest. */
    async adopt(limit: number): Promise<Channel[]> {
      const rows = await run<Row>(
        `update channel set holder = ${holder.number} where id in (select id from channel where ${ours} and ${isOpen}
           and (holder = ${holder.number} or not ${holder.isAlive}) order by ${isClaimable} desc, unclaimed_since limit $3 for update skip locked)
         returning ${columns}`,
        [limit],
      )
      return rows.map(toChannel)
    },

    /** Gives channels to whichever process adopts them next. */
    async release(ids: readonly Hex[]): Promise<void> {
      await run(`update channel set holder = 0 where ${ours} and id = any($3::bytea[]) and holder = ${holder.number}`, [
        bytes(ids),
      ])
    },

    figures: () => channelFigures(database, { chainId, asset }),
  }
}

/** Sums the channels in one token. */
export async function channelFigures(
  database: Pick<Database, 'query'>,
  { chainId, asset }: { readonly chainId: number; readonly asset: Hex },
): Promise<ChannelFigures> {
  const [sums] = await database.query<ChannelFigures>(
    `select count(*)::float8 as channels, coalesce(sum(balance - claimed), 0)::float8 as balance,
       coalesce(sum(${claimable}) filter (where ${isClaimable}), 0)::float8 as unclaimed,
       coalesce(sum(greatest(charged - balance, 0)), 0)::float8 as uncovered,
       coalesce(extract(epoch from clock_timestamp() - min(unclaimed_since) filter (where ${isClaimable})), 0)::float8 as "oldestSeconds"
     from channel where chain_id = $1 and asset = $2`,
    [chainId, hexToBytes(asset)],
  )
  return sums as ChannelFigures // an aggregate has one row
}

/** Returns the claim of what was sold through a channel and its deposit covers, or null for none. */
export function toClaim({ config, charged, signature, balance, claimed }: Channel): ChannelClaim | null {
  const total = charged < balance ? charged : balance
  return signature === null || total <= claimed ? null : { config, cumulative: charged, signature, total }
}

type Row = Record<'id' | Exclude<keyof ChannelConfig, 'withdrawDelay'>, Uint8Array> &
  Record<'balance' | 'claimed' | 'withdrawal' | 'charged', string> & {
    readonly withdrawDelay: bigint | number
    readonly block: bigint
    readonly signature: Uint8Array | null
    readonly isFresh: boolean
  }

function toChannel(row: Row): Channel {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, salt, withdrawDelay } = row
  return {
    id: bytesToHex(row.id),
    config: {
      payer: bytesToHex(payer),
      payerAuthorizer: bytesToHex(payerAuthorizer),
      receiver: bytesToHex(receiver),
      receiverAuthorizer: bytesToHex(receiverAuthorizer),
      token: bytesToHex(token),
      withdrawDelay: Number(withdrawDelay),
      salt: bytesToHex(salt),
    },
    balance: BigInt(row.balance),
    claimed: BigInt(row.claimed),
    withdrawal: BigInt(row.withdrawal),
    block: BigInt(row.block),
    charged: BigInt(row.charged),
    signature: row.signature && bytesToHex(row.signature),
    isFresh: row.isFresh,
  }
}
