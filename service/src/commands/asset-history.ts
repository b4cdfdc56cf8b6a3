/** `touchstone asset history`: what happened to an asset, from the registry's events (spec §2.5, §3). */
import { Command } from 'commander'
import { decodeEventLog, type Hex } from 'viem'
import { lifecycleStates } from '@touchstone/verdict'
import { assetRegistryAbi as abi } from '../chain/abi.ts'
import { blockGone, rangeTooWide, type ChainLog, type ChainSource } from '../chain/source.ts'
import { flagsText } from './asset-state.ts'
import { patiently } from './patience.ts'
import { argument } from './store-arguments.ts'
import { chainOf, type RunWork, type Session } from './store-command.ts'

type Options = { blocks: number; accounts?: true }

export function historyCommand(run: RunWork): Command {
  return new Command('history')
    .description('Lists the events of an asset, newest first, from the logs of the chain.')
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--blocks <n>', 'how far back to look', argument.count(50_000_000), 100_000)
    .option('--accounts', 'with the addresses that took part, which are personal data')
    .addHelpText(
      'after',
      '\nIt reads logs backwards from the head in ranges and ends at the minting. Most providers limit how much one may ask.\n\nExample:\n  touchstone asset history 7',
    )
    .action((id: bigint, options: Options) => run((session) => history(session, id, options)))
}

const mostEvents = 500

async function history(session: Session, tokenId: bigint, { blocks, accounts }: Options): Promise<void> {
  const { io } = session
  const { source } = chainOf(session)
  const head = await patiently(io, () => source.head())
  const lowest = head.number >= BigInt(blocks) ? head.number - BigInt(blocks) + 1n : 0n
  let shown = 0
  let isMinting = false
  const times = createTimes(source)
  for await (const log of logsBackwards(source, { from: lowest, to: head.number, signal: io.signal })) {
    const event = eventOf(log, tokenId, accounts === true)
    if (event === null) continue
    io.out(`${await times(log.blockHash)}  block ${log.blockNumber}  ${event.text}  ${log.transactionHash}`)
    isMinting ||= event.isMinting
    if (++shown >= mostEvents || (event.name === 'Transfer' && isMinting)) break
  }
  const looked = `the logs of ${head.number - lowest + 1n} blocks, ${lowest} to ${head.number}`
  if (isMinting) io.out(`${shown} events, back to the minting.`)
  else if (shown >= mostEvents) io.out(`The newest ${shown} events; there are more.`)
  else io.out(`${shown} events in ${looked}; what is older is not shown (--blocks looks further back).`)
}

type Event = { readonly name: string; readonly text: string; readonly isMinting: boolean }

/** All events of this contract name their token; `null` for another token or another kind of event. */
function eventOf(log: ChainLog, tokenId: bigint, withAccounts: boolean): Event | null {
  try {
    const { eventName, args } = decodeEventLog({ abi, topics: log.topics as [Hex, ...Hex[]], data: log.data })
    const values = args as unknown as Readonly<Record<string, unknown>>
    if (values['tokenId'] !== tokenId) return null
    const words = Object.entries(values).flatMap(([name, value]) => wordOf(name, value, withAccounts))
    return { name: eventName, text: [eventName, ...words].join(' '), isMinting: eventName === 'AssetMinted' }
  } catch {
    return null
  }
}

function wordOf(name: string, value: unknown, withAccounts: boolean): string[] {
  if (name === 'tokenId') return []
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)) return withAccounts ? [`${name}=${value}`] : []
  if (name === 'flags' && typeof value === 'number') return [`flags=${flagsText(value) || 'none'}`]
  if ((name === 'from' || name === 'to') && typeof value === 'number')
    return [`${name}=${lifecycleStates[value] ?? value}`]
  if (typeof value === 'string' && /^0x0+$/.test(value)) return []
  return [`${name}=${String(value)}`]
}

/** Logs of the registry, newest first. A range that a provider will not answer is halved. */
async function* logsBackwards(
  source: ChainSource,
  { from, to, signal }: { from: bigint; to: bigint; signal: AbortSignal },
): AsyncGenerator<ChainLog> {
  let width = 2_000n
  for (let high = to; high >= from && !signal.aborted;) {
    const low = high - width + 1n > from ? high - width + 1n : from
    const logs = await source.logsBetween(low, high)
    if (logs === rangeTooWide && width > 1n) {
      width /= 2n
      continue
    }
    if (logs === rangeTooWide) throw new Error(`No provider gives the logs of block ${high}.`)
    yield* logs.toReversed()
    high = low - 1n
  }
}

/** Times of blocks, each asked for once. */
function createTimes(source: ChainSource) {
  const known = new Map<string, string>()
  return async (hash: Hex): Promise<string> => {
    const found = known.get(hash)
    if (found !== undefined) return found
    const block = await source.block(hash)
    const time = block === blockGone ? 'unknown time' : new Date(Number(block.timestamp) * 1_000).toISOString()
    known.set(hash, time)
    return time
  }
}
