/**
 * Collects what was sold through payment channels. It claims the newest voucher of many channels in one transaction, when enough is
 * unclaimed, when the oldest purchase is an hour old, and at once from a channel whose payer withdraws its deposit. Any number of processes
 * may run it.
 */
import type { EthereumKey } from '../../keys/ethereum.ts'
import { eachConcurrently } from '../../lib/async/concurrency.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { Facilitator } from '../facilitator/facilitator.ts'
import { channelContract, claimDigest, encodeClaim, type ChannelClaim } from './channel.ts'
import type { ReadChannels } from './state.ts'
import { toClaim, type Channel, type ChannelStore } from './store.ts'

/** `claimUnits`: the unclaimed sum, in the token's smallest units, from which it is claimed at once. */
export type ClaimOptions = {
  readonly store: ChannelStore
  readonly readChannels: ReadChannels
  readonly facilitator: Pick<Facilitator, 'execute'>
  /** The accounts that authorize claims, the one for new channels first. */
  readonly accounts: readonly [EthereumKey, ...EthereumKey[]]
  readonly log: Log
  readonly claimUnits?: bigint
  readonly intervalMs?: number
}

const defaultUnits = 1_000_000n
const claimSeconds = 3_600
/** A withdrawal takes a day: a look every minute leaves more than a thousand tries for a claim. */
const lookMs = 60_000
const maxChannels = 1_000
/** Vouchers in one transaction. */
const maxRows = 50

export function createChannelClaims(options: ClaimOptions) {
  const { store, readChannels, facilitator, accounts, log, claimUnits = defaultUnits, intervalMs = lookMs } = options

  const pass = singleFlight(async (): Promise<void> => {
    const { units, seconds, channels: open } = await store.unclaimed()
    if (open === 0) return
    const adopted = await store.adopt(maxChannels)
    try {
      const channels = await refresh(adopted)
      const isDue = units >= claimUnits || seconds >= claimSeconds
      const due = isDue ? channels : channels.filter(({ withdrawal }) => withdrawal > 0n)
      if (due.length > 0) await claimAll(due)
    } finally {
      await store.release(adopted.map(({ id }) => id))
    }
  })

  /** Notes the state of all channels in one statement. One for each channel would keep taps and sales from a connection. */
  async function refresh(channels: readonly Channel[]): Promise<Channel[]> {
    const states = await readChannels(channels.map(({ id }) => id))
    const read = channels.flatMap(({ id, config }, index) => {
      const state = states[index]
      return state === undefined ? [] : [{ id, config, state }]
    })
    const covered = new Set(channels.filter(isCovered).map(({ id }) => id))
    const refreshed = (await store.refresh(read)).filter((channel) => channel !== undefined)
    for (const channel of refreshed)
      if (!isCovered(channel) && covered.has(channel.id))
        log.error('a channel does not cover its vouchers', { units: channel.charged - channel.balance })
    return refreshed
  }

  /** Waits for all groups, also where one fails: a channel that another process adopts meanwhile would be claimed twice. */
  async function claimAll(channels: readonly Channel[]): Promise<void> {
    const groups = groupsOf(channels)
    // Together they go in one transaction, each with its own outcome.
    const failures = await eachConcurrently(groups, groups.length, async (group) => {
      const account = accounts.find(({ address }) => address.toLowerCase() === group[0].config.receiverAuthorizer)
      if (account === undefined) log.error('vouchers of an account that is not configured cannot be claimed')
      else await claimGroup(group, account)
    })
    if (failures.length > 0) throw failures[0]
    await refresh(channels)
  }

  /** Claims vouchers in one transaction. Where it would fail, each is tried alone, so that one bad row does not block others. */
  async function claimGroup(group: readonly [ChannelClaim, ...ChannelClaim[]], account: EthereumKey): Promise<void> {
    const signature = await account.sign(claimDigest(group))
    const sent = await facilitator.execute?.({ target: channelContract, data: encodeClaim(group, signature) })
    if (sent !== 'rejected') return
    if (group.length > 1) for (const claim of group) await claimGroup([claim], account)
    else log.error('the contract refuses a voucher')
  }

  const run = () => pass().catch((error: unknown) => log.warn('vouchers are not claimed', { reason: reasonOf(error) }))
  const timer = setInterval(() => void run(), intervalMs).unref()

  return {
    /** Claims now what is due. */
    async pass(): Promise<void> {
      await pass.inFlight()?.catch(() => {}) // it may have begun before the caller's purchase
      await pass()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await pass.inFlight()?.catch(() => {})
    },
  }
}

/** Returns whether the deposit covers what was sold. */
function isCovered({ charged, balance }: Channel): boolean {
  return charged <= balance
}

/** Groups claims that one transaction can make. A channel with a withdrawal is alone: it may be empty before the transaction is in a block. */
function groupsOf(channels: readonly Channel[]): readonly (readonly [ChannelClaim, ...ChannelClaim[]])[] {
  const open = new Map<string, [ChannelClaim, ...ChannelClaim[]]>()
  const full: [ChannelClaim, ...ChannelClaim[]][] = []
  for (const channel of channels) {
    const claim = toClaim(channel)
    if (claim === null) continue
    const { receiver, receiverAuthorizer } = channel.config
    const name = channel.withdrawal > 0n ? channel.id : receiver + receiverAuthorizer
    const group = open.get(name)
    if (group === undefined) open.set(name, [claim])
    else if (group.push(claim) >= maxRows) {
      full.push(group)
      open.delete(name)
    }
  }
  return [...full, ...open.values()]
}
