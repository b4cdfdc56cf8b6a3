/** `touchstone asset bind`: binds a tag to an asset for ever, by its hash on chain, and registers it here (spec §3, BOUND). */
import type { Command } from 'commander'
import { mayBind } from '../../tap/tag-registry.ts'
import { toHex } from '../../tap/bytes.ts'
import { addWriteOptions, write, type WriteOptions } from './write.ts'
import { argument } from '../session/arguments.ts'
import { defineCommand, inSession } from '../session/command.ts'
import { chainOf, CommandError, type RunWork, type Session } from '../session/session.ts'

type Options = WriteOptions & { uid: Uint8Array; batch: string; gtin?: string; serial?: string }

export function bindCommand(run: RunWork): Command {
  const command = defineCommand('bind', 'Binds a tag to a minted asset. A tag serves one asset for ever.', {
    examples: [
      'touchstone asset bind 7 --uid 04DE5F1EACC040 --batch 2026-watches --gtin 09520001000010 --serial M41-002209',
    ],
  })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .requiredOption('--uid <uid>', 'UID of the tag', argument.uid)
    .requiredOption('--batch <id>', 'batch of the tag', argument.batchId)
    .option('--gtin <gtin>', 'GTIN of the item, together with --serial', argument.gtin)
    .option('--serial <serial>', 'serial number of the item', argument.serial)
  return addWriteOptions(command).action(inSession(run, bind))
}

async function bind(session: Session, tokenId: bigint, options: Options): Promise<number> {
  const { tags } = session.store
  const { uid, batch: batchId, gtin, serial } = options
  if ((gtin === undefined) !== (serial === undefined)) throw new CommandError('--gtin and --serial belong together.')
  const { tagHash } = chainOf(session)
  if (tagHash === undefined) throw new CommandError('TAG_PEPPER is not set, so that no tag can be bound.')
  const item = gtin === undefined || serial === undefined ? null : { gtin, serial }
  const allowed = await mayBind(tags, { tokenId, uid, batchId, item })
  if (!allowed.ok) {
    const hint = allowed.about === 'batch' ? ' See touchstone tag batch list.' : ''
    throw new CommandError(allowed.message + hint)
  }

  const change = `bind tag ${toHex(uid)} to asset ${tokenId} and register it`
  const written = await write(session, { kind: 'bindTag', tokenId, tagHash: tagHash(uid) }, options, {
    change,
    tokenId,
  })
  if (written.confirmed === undefined) return written.exit
  const registered = await tags.importTag({ uid, epoch: allowed.epoch, batchId, tokenId, ...item })
  if (registered.outcome === 'refused')
    throw new CommandError(`The tag is bound on chain, but the registry of tags refused it (${registered.because}).`)
  session.io.out(`tag          ${toHex(uid)}, batch ${batchId}${gtin === undefined ? '' : `, item ${gtin} ${serial}`}`)
  return written.exit
}
