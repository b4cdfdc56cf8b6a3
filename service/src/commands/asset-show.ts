/** `touchstone asset show`: the verdict and what else chain and store know of an asset (spec §2.1, §2.5). */
import { Command } from 'commander'
import { decodeFunctionResult, encodeFunctionData, zeroHash, type ContractFunctionReturnType } from 'viem'
import type { Hex } from '@touchstone/verdict'
import { assetRegistryAbi as abi } from '../chain/abi.ts'
import { blockGone, type Block } from '../chain/source.ts'
import type { Parts } from '../parts.ts'
import { hexOf } from '../tap/bytes.ts'
import { stateText } from './asset-state.ts'
import { patiently } from './patience.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

type Options = { json?: true; owner?: true }

export function showCommand(run: RunWork): Command {
  return new Command('show')
    .description('Shows the verdict on an asset, its record on chain, and the tag that is registered for it.')
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--owner', 'with the address of the owner, which is personal data')
    .option('--json', 'the verdict as GET /api/asset/<id> answers it')
    .addHelpText('after', '\nExample:\n  touchstone asset show 7')
    .action((id: bigint, options: Options) => run((session) => show(session, id, options)))
}

async function show(session: Session, tokenId: bigint, options: Options): Promise<void> {
  const lines = await patiently(session.io, () => linesOf(session, tokenId, options))
  for (const line of lines) session.io.out(line)
}

async function linesOf(session: Session, tokenId: bigint, { json, owner }: Options): Promise<string[]> {
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
    ['state', stateText(asset.record)],
    ['authentic', String(verdict.authentic)],
    ['flagged', String(verdict.flagged)],
    ['since', new Date(Number(asset.record.timestamp) * 1_000).toISOString()],
    ['owner', owner === true ? asset.record.owner : `${verdict.owner_commitment} (commitment)`],
    ['tag on chain', tag === zeroHash ? 'none' : tag],
    [
      'tag here',
      registered === undefined
        ? 'not registered'
        : `${hexOf(registered.uid)}, batch ${registered.batchId}, epoch ${registered.epoch}, last tap ${registered.lastCounter}`,
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

/** One value of the registry at a block. */
export async function readRegistry<Name extends Read>(
  { source, contract }: Pick<Parts, 'source' | 'contract'>,
  block: Block,
  functionName: Name,
  tokenId: bigint,
): Promise<ContractFunctionReturnType<typeof abi, 'view', Name>> {
  const data = encodeFunctionData({ abi, functionName: functionName as Read, args: [tokenId] })
  const result = await source.call(contract.toLowerCase() as Hex, data, block)
  if (result === blockGone) throw new CommandError('The chain changed while it was read; repeat the command.')
  return decodeFunctionResult({ abi, functionName: functionName as Read, data: result }) as ContractFunctionReturnType<
    typeof abi,
    'view',
    Name
  >
}
