/**
 * `touchstone product …` stores what items of a model have in common. It is stored by content hash, so that an item's metadata can name it.
 */
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { canonicalDetails } from '../../assets/metadata.ts'
import { splitByTier } from '../../passport/public/tiers.ts'
import { readJsonFile } from '../session/files.ts'
import { defineCommand, defineGroup, inSession } from '../session/command.ts'
import type { RunWork } from '../session/session.ts'
import { CommandError } from '../session/output.ts'
import { importPicture, requirePictures, withImportedPictures } from './pictures.ts'

export function productCommand(run: RunWork): Command {
  return defineGroup('product', 'Product details of a model, which the metadata of its items names by their hash.', [
    detailsCommand(run),
    pictureCommand(run),
  ])
}

function detailsCommand(run: RunWork): Command {
  return defineCommand('details', 'Stores product details and prints their hash.', {
    notes: `The file holds one JSON object: kind, model, picture, features, care, repair, spareParts, substances, materials,
recycling, certificates, footprint, facility, recall. Mint items with --details <hash>, so that the hash on chain covers it.
A picture, a drawing or a picture of a feature may name a file: {"file": "satchel.jpg", "alt": "A satchel from the front."}.
It is stored as touchstone product picture does, and its hashes take the place of the file's name.
The member access lists paths that only API keys of an access tier read: {"interest": ["substances"], "authority": ["facility"]}.
The other details are public and cannot be taken back: another text has another hash.`,
    examples: ['touchstone product details satchel.json'],
  })
    .argument('<file>', 'JSON file of the details, at most 16 kB')
    .option('--json', 'print a JSON object')
    .action(
      inSession(run, async (session, file: string, { json }: { json?: true }) => {
        const path = resolve(session.io.cwd, file)
        const document = await withImportedPictures(session, dirname(path), await readJsonFile(path))
        const split = splitByTier(document)
        if (!split.ok) throw new CommandError(split.message)
        const canonical = canonicalDetails(split.details)
        if (!canonical.ok) throw new CommandError(canonical.message)
        await requirePictures(session, canonical.body)
        for (const text of split.restricted) await session.store.restrictedDetails.put(text)
        await session.store.metadata.put(canonical)
        const restricted = Object.fromEntries(split.restricted.map(({ tier, hash }) => [tier, hash]))
        if (json === true)
          return session.io.out(
            JSON.stringify({ hash: canonical.hash, ...(split.restricted.length > 0 && { restricted }) }),
          )
        session.io.out(`details      ${canonical.hash}`)
        for (const { tier, hash } of split.restricted) session.io.out(`${tier.padEnd(12)} ${hash}`)
      }),
    )
}

function pictureCommand(run: RunWork): Command {
  return defineCommand('picture', 'Stores a picture and prints how product details name it.', {
    notes: `The file is a JPEG, PNG, WebP or AVIF of at most 20 MB and 40 million pixels. A process of its own decodes the first frame and
writes it anew: AVIF, WebP and JPEG of at most 60 kB each. Metadata such as places and names is left out.
The service shows pictures from its own host. They are public; their hashes in the details are covered by the hash on chain.`,
    examples: ['touchstone product picture satchel.jpg', 'touchstone product picture clasp.png --detail'],
  })
    .argument('<file>', 'picture file')
    .option('--detail', 'a small picture, of a feature to compare')
    .option('--json', 'the format: the only one, and the default')
    .action(
      inSession(run, async (session, file: string, { detail }: { detail?: true }) => {
        const path = resolve(session.io.cwd, file)
        session.io.out(JSON.stringify(await importPicture(session, path, detail ? 'detail' : 'picture')))
      }),
    )
}
