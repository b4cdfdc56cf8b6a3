/** `touchstone asset mint`: mints an asset, or many with the same metadata, which is on chain by its hash (spec §2.3, §3). */
import type { Command } from 'commander'
import { zeroHash } from '../../domain/chain.ts'
import type { Hex } from '@touchstone/verdict'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'
import { addMetadataOptions, checkMetadata, givenMetadata, type MetadataOptions } from './metadata.ts'
import { addWriteOptions, itemOption, write, type WriteFlags } from './write.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { operatorOf, type RunWork, type Session } from '../session/session.ts'
import { CommandError } from '../session/output.ts'

type Options = WriteFlags & MetadataOptions & { to?: Hex; id?: bigint; count?: number; gtin?: string; serial?: string }

export function mintCommand(run: RunWork): Command {
  const command = addMetadataOptions(
    defineCommand('mint', 'Mints an asset in state MINTED. Its metadata is stored here and its hash on chain.', {
      notes: `The metadata is public: the verdict shows it to anyone as unverified text. A GTIN and serial name one asset, for
ever; they may also be given later, to asset bind or in tag import.`,
      examples: [
        "touchstone asset mint --name 'Harrow 38 Field Watch' --brand 'Calder & Wick' --origin CH",
        "touchstone asset mint --name 'Harrow 38 Field Watch' --gtin 09520001000003 --serial H38-000418",
        'touchstone asset mint --metadata watch.json --count 50 --dry-run',
      ],
    }),
  )
    .option(
      '--gtin <gtin>',
      'GTIN of the item, together with --serial: its address becomes /01/<gtin>/21/<serial>',
      argument.gtin,
    )
    .option('--serial <serial>', 'serial number of the item', argument.serial)
    .option('--to <address>', 'its first owner (default: the operator)', argument.address)
    .option('--id <n>', 'token id of your own, for importers (default: the next free one)', argument.tokenId)
    .option('--count <n>', 'mint n of them, 1 to 200', argument.count(200))
  return addWriteOptions(command).action(inSession(run, mint))
}

async function mint(session: Session, options: Options): Promise<number> {
  const { id, count, dryRun } = options
  if (id !== undefined && count !== undefined)
    throw new CommandError('--id is one asset; --count takes the next free ids.')
  const item = await checkItem(session, options)
  const to = options.to ?? operatorOf(session)
  const given = await givenMetadata(session, options)
  const metadata = given === undefined ? undefined : await checkMetadata(session, given)
  if (metadata !== undefined && dryRun !== true) await session.store.metadata.put(metadata)
  const hash = metadata?.hash ?? zeroHash
  const request: WriteRequest =
    id !== undefined
      ? { kind: 'mintWithId', to, tokenId: id, metadataHash: hash }
      : count !== undefined
        ? { kind: 'mintBatch', to, metadataHashes: Array.from({ length: count }, () => hash) }
        : { kind: 'mint', to, metadataHash: hash }
  const change = `mint ${count ?? 1} ${(count ?? 1) === 1 ? 'asset' : 'assets'}${metadata === undefined ? ' without metadata' : ` with the metadata ${hash}`}`
  const { exit, confirmed } = await write(session, request, options, change)
  const ids = confirmed?.tokenIds ?? []
  const out = options.json === true ? () => {} : session.io.out
  if (ids.length > 3) out(`assets       ${ids[0]} to ${ids.at(-1)}, ${ids.length} in all`)
  const [tokenId] = ids
  if (item !== null && tokenId !== undefined) {
    const registered = await session.store.items.register({ tokenId, ...item })
    if (!registered.ok)
      throw new CommandError(`Asset ${tokenId} is minted, but not as this item: ${registered.message}`)
    out(`item         ${item.gtin} ${item.serial}`)
  }
  if (confirmed !== undefined) out(`metadata     ${metadata === undefined ? 'none' : hash}`)
  return exit
}

/** Returns the item to mint. Throws when it is another asset's already, before a transaction is sent. */
async function checkItem({ store }: Session, { gtin, serial, count, id, key }: Options): Promise<ItemKey | null> {
  const item = itemOption({ gtin, serial })
  if (item === null) return null
  if (count !== undefined) throw new CommandError('--count mints many assets, and a GTIN and serial name one.')
  const holder = await store.items.tokenOfItem(item)
  // With a key of the operator's own this may be the mint that was done before.
  if (holder !== null && holder !== id && key === undefined)
    throw new CommandError(`Asset ${holder} is registered under this GTIN and serial.`)
  return item
}
