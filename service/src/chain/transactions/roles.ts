/**
 * The roles of the registry as the chain has them (contracts/README.md): their holders at one block. The contract lists no holders, so
 * that they are those of the events RoleGranted for whom it still says so. Both versions of the contract have the same roles.
 */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, toEventSelector } from 'viem/utils'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { Block } from '../rpc/block.ts'
import { nonCanonical, rangeTooWide } from '../rpc/answer.ts'
import { isBusy, wasAsked } from '../rpc/failover.ts'
import { type ChainSource } from '../rpc/source.ts'

const registryRoles = [
  'DEFAULT_ADMIN_ROLE',
  'ISSUER_ROLE',
  'BINDER_ROLE',
  'QA_ROLE',
  'ATTESTER_ROLE',
  'GUARDIAN_ROLE',
  'RECYCLER_ROLE',
] as const
export type RegistryRole = (typeof registryRoles)[number]

/** `id` is the bytes32 of the role. Addresses are in lower case. */
type RoleHolders = Readonly<{ role: RegistryRole; id: Hex; holders: readonly Hex[] }>

type RoleSource = Readonly<{
  source: Pick<ChainSource, 'head' | 'calls' | 'logsBetween'>
  contract: Hex
  /** The events are read from here on; null: only `accounts` are asked about. */
  startBlock: bigint | null
  /** Accounts that are asked about although no event names them. */
  accounts: readonly Hex[]
}>

/** Reads all roles at the head. `fully` is false where no events were read, or the providers do not return all from `startBlock` on. */
export async function readRoles({ source, contract, startBlock, accounts }: RoleSource) {
  const head = await source.head()
  const granted = startBlock === null ? null : await readGranted(source, startBlock, head)
  const candidates = [...new Set([...accounts.map((account) => account.toLowerCase() as Hex), ...(granted ?? [])])]
  const ids = await callAll(
    source,
    contract,
    head,
    registryRoles.map((functionName) => encodeFunctionData({ abi, functionName })),
  )
  const questions = ids.flatMap((role) =>
    candidates.map((account) => encodeFunctionData({ abi, functionName: 'hasRole', args: [role, account] })),
  )
  const answers = await callAll(source, contract, head, questions)
  const roles = registryRoles.map((role, at): RoleHolders => {
    const holders = candidates.filter((_account, index) => isTrue(answers[at * candidates.length + index]))
    return { role, id: ids[at] ?? '0x', holders }
  })
  return { head, roles, fully: granted !== null }
}

function isTrue(data: Hex | undefined): boolean {
  return data !== undefined && decodeFunctionResult({ abi, functionName: 'hasRole', data })
}

/** Calls per request; providers allow at least this many. */
const perRequest = 50

async function callAll(
  source: RoleSource['source'],
  contract: Hex,
  head: Block,
  datas: readonly Hex[],
): Promise<Hex[]> {
  const answers: Hex[] = []
  for (let at = 0; at < datas.length; at += perRequest) {
    const found = await source.calls(contract.toLowerCase() as Hex, datas.slice(at, at + perRequest), head)
    if (found === nonCanonical) throw chainUnavailable('the block is not canonical')
    answers.push(...found)
  }
  return answers
}

const roleGranted = toEventSelector('RoleGranted(bytes32,address,address)')
const widest = 10_000_000n
/** Requests for events; a provider that serves 10,000 blocks at once has sent 20 million then. */
const mostRequests = 2_000

/** Returns the accounts that ever got a role, or null where that would take too many requests. */
async function readGranted(
  source: RoleSource['source'],
  from: bigint,
  { number: to }: Block,
): Promise<ReadonlySet<Hex> | null> {
  const granted = new Set<Hex>()
  let span = widest
  let asked = 0
  for (let at = from; at <= to;) {
    if ((asked += 1) > mostRequests) return null
    const end = at + span - 1n < to ? at + span - 1n : to
    const logs = await source
      .logsBetween(at, end, { events: [roleGranted] })
      .catch((error: unknown): typeof rangeTooWide => {
        // A limit of the rate, or an open breaker, says nothing about the range. Else it may have missed the deadline.
        if (span === 1n || isBusy(error) || !wasAsked(error)) throw error
        return rangeTooWide
      })
    if (logs === rangeTooWide) {
      if (span === 1n) return null
      span = span > 10n ? span / 10n : 1n
      continue
    }
    for (const { topics } of logs) granted.add(`0x${(topics[2] ?? '').slice(26)}`)
    at = end + 1n
  }
  return granted
}
