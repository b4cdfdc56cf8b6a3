/** `touchstone asset metadata`: corrects the metadata of an asset until it is claimed (spec §2.3). Its options are those of `asset mint`. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { canonicalMetadata, changedKeys, metadataKeys, type Metadata } from '../../assets/metadata.ts'
import { detailsHashOf } from '../../domain/product-details.ts'
import { type JsonObject, parseJsonObject } from '../../lib/json.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { readJsonFile } from '../session/files.ts'
import { CommandError } from '../session/output.ts'
import { chainOf, retryChain, type RunWork, type Session } from '../session/session.ts'
import { formatState } from './show.ts'
import { addWriteOptions, previousRequest, write, type WriteFlags } from './write.ts'

export type MetadataOptions = Metadata & { readonly details?: Hex; readonly metadata?: string }

export function addMetadataOptions(command: Command): Command {
  return command
    .option('--name <text>', 'name of the product')
    .option('--brand <text>', 'its brand')
    .option('--description <text>', 'its description')
    .option('--sku <text>', 'stock number')
    .option('--origin <text>', 'place of manufacture; a country code such as CH also reaches the passport')
    .option('--size <text>', 'size')
    .option('--image <url>', 'https or ipfs URL of a picture')
    .option('--details <hash>', 'hash of the product details, from product details', argument.hash)
    .option('--metadata <file>', 'JSON file with these fields, instead of the options')
}

export function metadataCommand(run: RunWork): Command {
  const description =
    'Corrects the metadata of an asset until it is claimed. It is stored here and its new hash on chain.'
  const command = defineCommand('metadata', description, {
    notes: `A field stays as it is when its option is left out, and is removed by an empty text. --metadata replaces all fields. The
metadata is public: the verdict shows it to anyone as unverified text. A correction is an event on chain, and the former text stays stored.`,
    examples: [
      "touchstone asset metadata 7 --name 'Harrow 38 Field Watch' --dry-run",
      'touchstone asset metadata 7 --metadata watch.json',
    ],
  })
  return addWriteOptions(
    addMetadataOptions(command.argument('<id>', 'token id of the asset', argument.tokenId)),
  ).action(inSession(run, changeMetadata))
}

/** Returns the metadata that the options or their file give, not checked yet; undefined without any. */
export async function givenMetadata({ io }: Session, options: MetadataOptions): Promise<unknown> {
  const fields = Object.fromEntries(
    [...metadataKeys, 'details' as const].flatMap((key) => (options[key] === undefined ? [] : [[key, options[key]]])),
  )
  const hasFields = Object.keys(fields).length > 0
  if (options.metadata === undefined) return hasFields ? fields : undefined
  if (hasFields) throw new CommandError('Give the metadata as options or as a file, not as both.')
  return readJsonFile(resolve(io.cwd, options.metadata))
}

/** Returns metadata as it is stored. Throws `CommandError` where it cannot be, or names product details that are not stored. */
export async function checkMetadata({ store }: Session, input: unknown) {
  const canonical = canonicalMetadata(input)
  if (!canonical.ok) throw new CommandError(canonical.message)
  const details = detailsHashOf(input)
  if (details !== null && !(await store.metadata.getMany([details])).has(details))
    throw new CommandError(`No product details are stored under ${details}. Store them with product details.`)
  return canonical
}

type Options = WriteFlags & MetadataOptions

/** Stores the text before it sends the hash, so that the chain names no text that is missing. */
async function changeMetadata(session: Session, tokenId: bigint, options: Options): Promise<number> {
  const given = await givenMetadata(session, options)
  if (given === undefined)
    throw new CommandError('Name what to change: --name and the other fields, or --metadata with a file.')
  const sent = await previousRequest(session, options)
  const isRepeat = sent?.kind === 'setMetadataHash' && sent.tokenId === tokenId
  const formerHash = isRepeat ? sent.metadataHash : await changeableHash(session, tokenId)
  const former = await storedMetadata(session, formerHash)
  const isWhole = options.metadata !== undefined
  if (former === null && !isWhole)
    throw new CommandError(
      `The metadata of asset ${tokenId} is not stored here, so that no field can stay: give all with --metadata.`,
    )
  const fields = Object.entries({ ...former, ...(given as Metadata) }).filter(([, text]) => text !== '')
  const metadata = await checkMetadata(session, isWhole ? given : Object.fromEntries(fields))
  if (!isRepeat && metadata.hash === formerHash) throw new CommandError(`Asset ${tokenId} has this metadata already.`)
  if (options.dryRun !== true) await session.store.metadata.put(metadata)
  const changed = changedKeys(former ?? {}, parseJsonObject(metadata.body) ?? {})
  const change = `change the metadata of asset ${tokenId} (${changed.join(', ')}) to ${metadata.hash}`
  const request = { kind: 'setMetadataHash', tokenId, metadataHash: metadata.hash } as const
  const { exit, confirmed } = await write(session, request, options, change)
  if (confirmed !== undefined && options.json !== true) session.io.out(`metadata     ${metadata.hash}`)
  return exit
}

/** Returns the hash of an asset whose metadata may change, null without metadata. The contract allows it before the claim only. */
async function changeableHash(session: Session, tokenId: bigint): Promise<Hex | null> {
  const { asset } = await retryChain(session.io, () => chainOf(session).reader.read(tokenId))
  const { record, metadataHash } = asset
  if (record.state === 0) throw new CommandError(`Asset ${tokenId} does not exist.`)
  if (record.state <= 3) return metadataHash
  throw new CommandError(
    `Asset ${tokenId} is ${formatState(record)}: metadata can be changed until the asset is claimed, and not while it is flagged.`,
  )
}

/** Returns the fields stored under a hash, none without a hash, or null when the text is not stored here. */
async function storedMetadata({ store }: Session, hash: Hex | null): Promise<JsonObject | null> {
  if (hash === null) return {}
  return parseJsonObject((await store.metadata.getMany([hash])).get(hash) ?? '')
}
