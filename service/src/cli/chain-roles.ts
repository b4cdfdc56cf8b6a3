/** `touchstone chain roles`: the keys of this service, the roles that they hold on chain, and what is missing (contracts/README.md). */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import type { Command } from 'commander'
import { formatUnits } from 'viem/utils'
import { sharedRoles } from '../app/keys.ts'
import type { Components } from '../app/components.ts'
import type { OperatorRole } from '../chain/transactions/calls.ts'
import { readRegistryVersion } from '../chain/transactions/registry-version.ts'
import { numberFrom } from '../chain/transactions/transaction.ts'
import { readRoles, type RegistryRole } from '../chain/transactions/roles.ts'
import { defineCommand, defineGroup, inSession } from './session/command.ts'
import type { CommandIo } from './session/control-client.ts'
import { chainOf, retryChain, type RunWork, type Session } from './session/session.ts'
import { CommandError, formatJson, printTable } from './session/output.ts'

export function chainCommand(run: RunWork): Command {
  return defineGroup('chain', 'The registry contract: the holders of its roles.', [
    defineCommand(
      'roles',
      'Shows who holds which role on chain, with which keys this service writes, and what is missing.',
      {
        notes: `Exit code 1: a key of this service lacks a role or ether, or a role has no key; each with what to do. It changes nothing: the
admin of the contract gives and takes roles. The holders are read from the events since CHAIN_START_BLOCK.`,
        examples: ['touchstone chain roles', 'touchstone chain roles --json'],
      },
    )
      .option('--json', 'print a JSON object')
      .action(inSession(run, showRoles)),
  ])
}

/** The roles on chain that each key needs. Reported items are recycled by an account that is RECYCLER and GUARDIAN. */
const needs: Readonly<Record<OperatorRole, readonly RegistryRole[]>> = {
  issuer: ['ISSUER_ROLE'],
  binder: ['BINDER_ROLE'],
  qa: ['QA_ROLE'],
  attester: ['ATTESTER_ROLE'],
  guardian: ['GUARDIAN_ROLE'],
  recycler: ['RECYCLER_ROLE', 'GUARDIAN_ROLE'],
  relayer: [],
}

/** `what` is the role on chain, `ether` or `key`; `remedy` is one sentence or a command. */
type Missing = Readonly<{ role: OperatorRole; what: string; address: Hex | null; remedy: string }>

async function showRoles(session: Session, { json }: { json?: true }): Promise<number> {
  const report = await examineRoles(chainOf(session), session.io)
  if (json === true) session.io.out(formatJson(report))
  else printReport(session.io.out, report)
  return report.missing.length > 0 ? 1 : 0
}

type RolesReport = Awaited<ReturnType<typeof examineRoles>>
type Parts = Pick<Components, 'contract' | 'chainInterface' | 'indexSource' | 'roleKeys' | 'paymentRpc'> & {
  /** Null: the chain is asked about the keys of this service only. */
  readonly startBlock: bigint | null
}

export async function examineRoles(parts: Parts, io: Pick<CommandIo, 'err' | 'signal'>) {
  const { contract, chainInterface, indexSource, startBlock, roleKeys, paymentRpc } = parts
  if (chainInterface === 'foreign')
    throw new CommandError('CHAIN_CONTRACT is no registry of this project (CHAIN_INTERFACE).')
  const accounts = roleKeys.map(({ account }) => account.address)
  const read = () => readRoles({ source: indexSource, contract, startBlock, accounts })
  const { head, roles, fully } = await retryChain(io, read)
  const version = await retryChain(io, () => readRegistryVersion(paymentRpc, contract))
  const balances = new Map<Hex, bigint>()
  for (const address of new Set(accounts))
    balances.set(address, await retryChain(io, () => numberFrom(paymentRpc, 'eth_getBalance', [address, 'latest'])))
  const keys = roleKeys.map(({ role, account: { address }, from }) => {
    const held = roles.filter(({ holders }) => holders.includes(address.toLowerCase() as Hex)).map((one) => one.role)
    const holds = needs[role].filter((name) => held.includes(name))
    return { role, key: from, address: checksumAddress(address), balance: balances.get(address) ?? 0n, holds }
  })
  return {
    contract,
    version,
    block: head.number,
    complete: fully,
    roles: roles.map(({ role, id, holders }) => ({ role, id, holders: holders.map(checksumAddress) })),
    keys,
    shared: sharedRoles(roleKeys),
    missing: [...missingRoles(keys, roles, contract), ...missingKeys(keys), ...missingEther(keys)],
  }
}

function printReport(print: (line: string) => void, report: RolesReport): void {
  const { contract, version, block, complete, roles, keys, shared, missing } = report
  print(`contract ${contract}, version ${version}, at block ${block}`)
  print('')
  const ownName = (holder: Hex) => keys.find(({ address }) => address === holder)?.key ?? ''
  const rows = roles.flatMap(({ role, holders }) =>
    holders.length === 0 ? [[role, 'no account', '']] : holders.map((holder) => [role, holder, ownName(holder)]),
  )
  printTable(print, ['role on chain', 'held by', 'key of this service'], rows)
  if (!complete) print('There may be more holders: the providers did not give all events. Set CHAIN_START_BLOCK.')
  print('')
  const keyRows = keys.map(({ role, key, address, balance }) => [role, key, address, formatEther(balance)])
  printTable(print, ['writes as', 'key', 'address', 'ether'], keyRows)
  for (const own of shared) print(`One key is ${own.join(', ')}: a thief of it is all of them.`)
  for (const { role, what, remedy } of missing) print(`missing      ${role}: ${what}. ${remedy}`)
  if (missing.length === 0) print('Nothing is missing.')
}

type ShownKey = Readonly<{
  role: OperatorRole
  key: string
  address: Hex
  balance: bigint
  holds: readonly RegistryRole[]
}>
type Roles = Awaited<ReturnType<typeof readRoles>>['roles']

function missingRoles(keys: readonly ShownKey[], roles: Roles, contract: Hex): Missing[] {
  return keys.flatMap(({ role, address, holds }) =>
    needs[role]
      .filter((name) => !holds.includes(name))
      .map((name) => {
        const id = roles.find((one) => one.role === name)?.id ?? '0x'
        const reason = role === 'recycler' && name === 'GUARDIAN_ROLE' ? ' (for reported items)' : ''
        const remedy = `The admin runs: cast send ${contract} "grantRole(bytes32,address)" ${id} ${address} --rpc-url <url> --interactive`
        return { role, what: `${name}${reason}`, address, remedy }
      }),
  )
}

function missingKeys(keys: readonly ShownKey[]): Missing[] {
  return (Object.keys(needs) as OperatorRole[])
    .filter((role) => !keys.some((key) => key.role === role))
    .map((role) => {
      const settings = role === 'attester' ? 'ATTESTER_KEY' : `${role.toUpperCase()}_KEY or OPERATOR_KEY`
      return { role, what: 'key', address: null, remedy: `Set ${settings} where this service should write.` }
    })
}

/** The attester signs for others to send; it pays only when it reports TAMPER. */
function missingEther(keys: readonly ShownKey[]): Missing[] {
  const unfunded = keys.filter(({ role, balance }) => balance === 0n && role !== 'attester')
  return [...Map.groupBy(unfunded, ({ address }) => address)].flatMap(([address, [first]]) =>
    first === undefined ? [] : [{ role: first.role, what: 'ether', address, remedy: `Send some to ${address}.` }],
  )
}

/** Formats wei as ether with at most six digits behind the point. */
function formatEther(wei: bigint): string {
  return formatUnits(wei / 10n ** 12n, 6)
}
