/** `touchstone privacy …`: what the database has of a person, and its erasure. */
import type { Hex } from '@touchstone/verdict'
import { Option, type Command } from 'commander'
import { localActor } from '../db/audit.ts'
import { wholeEpoch } from '../index/contract.ts'
import { erasePersonalData, exportPersonalData, type DataSubject, type TagHashes } from '../privacy/personal-data.ts'
import { argument, defineCommand, defineGroup, inSession, textArgument } from './session/command.ts'
import { chainOf, type RunWork, type Session } from './session/session.ts'
import { CommandError, formatJson } from './session/output.ts'

type Options = { readonly owner?: Hex; readonly uid?: Uint8Array }

export function privacyCommand(run: RunWork): Command {
  const ofSubject = (command: Command) =>
    command
      .option('--owner <address>', 'an account: its items and transfers', argument.address)
      .addOption(new Option('--uid <uid>', 'a tag: its taps').argParser(argument.uid).conflicts('owner'))
  const stays = `The chain is public and cannot be erased; payments stay for PAYMENT_RETENTION_DAYS, and the audit trail, which names no owner. The last
counter of a tag stays, so that no tap verifies twice.`
  return defineGroup('privacy', 'Personal data of one owner or one tag: what is kept of them, and its erasure.', [
    ofSubject(
      defineCommand('export', 'Prints everything that the database has of an owner or a tag, as JSON Lines.', {
        notes: 'Taps count to the owner whose item was tapped, from the transfer to them to the next one.',
        examples: [
          'touchstone privacy export --owner 0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
          'touchstone privacy export --uid 04DE5F1EACC040',
        ],
      }),
    ).action(inSession(run, exportAll)),
    ofSubject(
      defineCommand(
        'erase',
        'Erases messages of transfers and records of taps. It prints only what it would erase unless --yes is given.',
        {
          notes: stays,
          examples: [
            'touchstone privacy erase --owner 0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
            'touchstone privacy erase --uid 04DE5F1EACC040 --reference case-118 --yes',
          ],
        },
      ),
    )
      .option('--reference <text>', 'what the audit trail names instead of the person', parseReference, 'request')
      .option('--yes', 'erase it, for ever')
      .option('--json', 'print a JSON object')
      .action(inSession(run, erase)),
  ])
}

function searchOf(session: Session, { owner, uid }: Options): { subject: DataSubject; tagHashes: TagHashes } {
  const subject = owner !== undefined ? { owner } : uid !== undefined ? { uid } : null
  if (subject === null) throw new CommandError('Say whose data: --owner <address>, or --uid <uid>.')
  if (session.store.database.dialect === 'citus')
    throw new CommandError(
      'The tables of this database are distributed over a cluster, which this command does not search.',
    )
  const { tagHash, formerTagHash } = chainOf(session)
  if (tagHash === undefined)
    throw new CommandError('TAG_PEPPER is not set: set it as the service has it, to find the taps of a tag.')
  return {
    subject,
    tagHashes: (of) => [tagHash, formerTagHash].flatMap((hash) => (hash === undefined ? [] : [hash(of)])),
  }
}

/** Runs a search. The items of a person are found by the index: while it is filled, the search would find a part of them, or nothing. */
async function inWholeIndex<T>({ store }: Session, search: () => Promise<T>): Promise<T> {
  const before = await wholeEpoch(store.database)
  const result = await search()
  if ((await wholeEpoch(store.database)) === before) return result
  throw new CommandError('The index was rebuilt meanwhile, so that something may be missing. Repeat the command.')
}

async function exportAll(session: Session, options: Options): Promise<void> {
  const { store, io } = session
  const search = searchOf(session, options)
  await inWholeIndex(session, () =>
    exportPersonalData(store.database, search, async (line) => {
      if (io.signal.aborted) throw new CommandError('The export was interrupted. Repeat the command.')
      io.out(line)
      await io.drained?.()
    }),
  )
}

type EraseOptions = Options & { readonly reference: string; readonly yes?: true; readonly json?: true }

async function erase(session: Session, { reference, yes, json, ...options }: EraseOptions): Promise<void> {
  const { store, io } = session
  const search = searchOf(session, options)
  const dryRun = yes !== true
  const erasure = { ...search, actor: localActor(), reference, dryRun }
  const counts = await inWholeIndex(session, () => erasePersonalData(store.database, erasure))
  if (json === true) return io.out(formatJson({ erased: !dryRun, counts }))
  for (const [kind, count] of Object.entries(counts)) io.out(`${String(count).padStart(6)}  ${words[kind] ?? kind}`)
  io.out(dryRun ? 'Nothing was erased; repeat the command with --yes.' : 'Erased. Backups from before still have it.')
}

const words: Readonly<Record<string, string>> = {
  message: 'messages of transfers',
  tap: 'taps of the ledger',
  presentation: 'rows of the log of taps',
  anomaly: 'anomalies of taps',
  announcement: 'announcements of taps, which stay empty in their place',
}

const parseReference = textArgument(
  (text) => /^[\x21-\x7e]{1,60}$/.test(text),
  'A reference has 1 to 60 printable ASCII characters.',
)
