/** `touchstone product …`: what items of a model have in common, stored by content hash so that an item's metadata can name it. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { canonicalDetails } from '../../assets/metadata.ts'
import { readJsonFile } from '../session/json-file.ts'
import { defineCommand, defineGroup, inSession } from '../session/command.ts'
import { CommandError, type RunWork } from '../session/session.ts'

export function productCommand(run: RunWork): Command {
  return defineGroup('product', 'Product details of a model, which the metadata of its items names by their hash.', [
    detailsCommand(run),
  ])
}

function detailsCommand(run: RunWork): Command {
  return defineCommand('details', 'Stores product details and prints their hash.', {
    notes: `The file holds one JSON object: kind, model, picture, features, care, repair, spareParts, substances, materials,
recycling, certificates, footprint, facility, recall. Mint items with --details <hash>, so that the hash on chain covers it.
The details are public and cannot be taken back: another text has another hash.`,
    examples: ['touchstone product details satchel.json'],
  })
    .argument('<file>', 'JSON file of the details, at most 16 kB')
    .action(
      inSession(run, async (session, file: string) => {
        const canonical = canonicalDetails(await readJsonFile(resolve(session.io.cwd, file)))
        if (!canonical.ok) throw new CommandError(canonical.message)
        await session.store.metadata.put(canonical)
        session.io.out(`details      ${canonical.hash}`)
      }),
    )
}
