/** `touchstone asset show`: the verdict, the record on chain and the registration of an asset (spec §2.1, §2.5). */
import type { Command } from 'commander'
import { type ContractFunctionReturnType, decodeFunctionResult, encodeFunctionData, zeroHash } from 'viem'
import { assetFlags, type AssetRecord, type Hex, lifecycleStates } from '@touchstone/verdict'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { nonCanonical } from '../../chain/rpc/source.ts'
import type { Block } from '../../chain/rpc/block.ts'
import type { Components } from '../../app/components.ts'
import { toHex } from '../../tap/bytes.ts'
import { chainOf, CommandError, retryChain, type RunWork, type Session } from '../session/session.ts'
import { argument } from '../session/arguments.ts'
import { defineCommand, inSession } from '../session/command.ts'

type Options = { json?: true; owner?: true }

export function showCommand(run: RunWork): Command {
  const description = 'Shows the verdict on an asset, its record on chain, and the tag that is registered for it.'
  return defineCommand('show', description, { examples: ['touchstone asset show 7'] })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--owner', 'include the address of the owner, which is personal data')
    .option('--json', 'print the verdict as GET /api/asset/<id> answers it')
    .action(inSession(run, show))
}

async function show(session: Session, tokenId: bigint, options: Options): Promise<void> {
  const lines = await retryChain(session.io, () => formatAsset(session, tokenId, options))
  for (const line of lines) session.io.out(line)
}

async function formatAsset(session: Session, tokenId: bigint, { json, owner }: Options): Promise<string[]> {
  const { verdicts, reader, source, contract } = chainOf(session)
  const { store } = session
  const answer = await verdicts.answer(tokenId)
  if (answer === null) throw new CommandError(`Asset ${tokenId} does not exist.`)
  const { verdict, body } = answer
  if (json === true) return [body]
  const { asset } = await reader.read(tokenId)
  const head = await source.head()
  const [pending, tag] = await Promise.all([
    readRegistry({ source, contract }, head, 'pendingTransfer', tokenId),
    readRegistry({ source, contract }, head, 'getTagByToken', tokenId),
  ])
  const registered = await store.tags.tagOfToken(tokenId)
  const { _warning: _, ...text } = verdict.untrusted ?? {}
  const lines: readonly (readonly [string, string])[] = [
    ['asset', `${tokenId} of ${verdict.chainRef.contract} on chain ${verdict.chainRef.chain_id}`],
    ['state', formatState(asset.record)],
    ['authentic', String(verdict.authentic)],
    ['flagged', String(verdict.flagged)],
    ['since', new Date(Number(asset.record.timestamp) * 1_000).toISOString()],
    ['owner', owner === true ? asset.record.owner : `${verdict.owner_commitment} (commitment)`],
    ['tag on chain', tag === zeroHash ? 'none' : tag],
    [
      'tag here',
      registered === undefined
        ? 'not registered'
        : `${toHex(registered.uid)}, batch ${registered.batchId}, epoch ${registered.epoch}, last tap ${registered.lastCounter}`,
    ],
    ...(registered === undefined || registered.gtin === null
      ? []
      : [['item', `${registered.gtin} ${registered.serial}`] as const]),
    [
      'transfer',
      pending[1] === 0n ? 'none pending' : `pending until ${new Date(Number(pending[1]) * 1_000).toISOString()}`,
    ],
    ['metadata', asset.metadataHash ?? 'none'],
    ...Object.entries(text).map(([name, value]) => [`  ${name}`, `${value}`.replaceAll('\n', ' ')] as const),
    ['block', `${verdict.chainRef.block_number} ${verdict.chainRef.block_hash}`],
  ]
  return lines.map(([name, value]) => `${name.padEnd(13)} ${value}`)
}

type Read = 'pendingTransfer' | 'getTagByToken'

/** Reads one value of the registry at a block. */
export async function readRegistry<Name extends Read>(
  { source, contract }: Pick<Components, 'source' | 'contract'>,
  block: Block,
  functionName: Name,
  tokenId: bigint,
): Promise<ContractFunctionReturnType<typeof abi, 'view', Name>> {
  const data = encodeFunctionData({ abi, functionName: functionName as Read, args: [tokenId] })
  const result = await source.call(contract.toLowerCase() as Hex, data, block)
  if (result === nonCanonical) throw new CommandError('The chain changed while it was read; repeat the command.')
  return decodeFunctionResult({ abi, functionName: functionName as Read, data: result }) as ContractFunctionReturnType<
    typeof abi,
    'view',
    Name
  >
}

/** Formats state and flags, such as `FLAGGED (lost, stolen)`. */
export function formatState({ state, flags }: Pick<AssetRecord, 'state' | 'flags'>): string {
  const names = formatFlags(flags)
  return names === '' ? lifecycleStates[state] : `${lifecycleStates[state]} (${names})`
}

/** Formats flag bits as `asset flag --reason` takes them. */
export function formatFlags(flags: number): string {
  return Object.entries(assetFlags)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name.toLowerCase().replace('_', '-'))
    .join(', ')
}
