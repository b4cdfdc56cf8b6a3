/** `touchstone audit …`: the trail of every change, its verification, and its export for a log collector. */
import type { Command } from 'commander'
import { auditHeadFile, openHead, readHeads, type SignedHead, signHead } from '../app/audit-heads.ts'
import {
  type AuditBody,
  type AuditEntry,
  type AuditHead,
  auditHead,
  formatHead,
  readAudit,
  verifyAudit,
} from '../db/audit.ts'
import { didOf } from '../passport/did-document.ts'
import { parseJsonObject } from '../lib/json.ts'
import { programVersion } from '../lib/version.ts'
import { argument, defineCommand, defineGroup, inSession, rejectArgument } from './session/command.ts'
import type { RunWork, Session } from './session/session.ts'
import { CommandError, formatJson, printTable } from './session/output.ts'

export function auditCommand(run: RunWork): Command {
  return defineGroup('audit', 'The audit trail: every change of keys and products, by whom, chained by hashes.', [
    defineCommand('list', 'Shows the newest entries, the newest last.', {
      examples: ['touchstone audit list', 'touchstone audit list --last 100'],
    })
      .option('--last <n>', 'how many, 1 to 1000', argument.count(1_000), 20)
      .option('--json', 'print a JSON array')
      .action(inSession(run, list)),
    defineCommand('verify', 'Checks every entry against the one before, and prints the head: keep it elsewhere.', {
      notes: `Exit code 1: an entry was changed, removed or inserted. An earlier head finds a trail that was cut or written anew as a whole.
Such heads are signed by the issuer each day (PASSPORT_SIGNING=on, DATA_DIR/audit/heads.jws); --head gives another one.`,
      examples: ['touchstone audit verify'],
    })
      .option('--head <head>', 'a head from before: <number>:<hash>, or one that the issuer signed', parseHead)
      .option('--json', 'print a JSON object')
      .action(inSession(run, verify)),
    defineCommand('head', 'Prints the head, and the same signed by the issuer where it has keys: keep it elsewhere.', {
      notes:
        'The signed form is a JWS (ES256) with the key that signs passports; anyone checks it with /.well-known/did.json.',
      examples: ['touchstone audit head'],
    })
      .option('--json', 'print a JSON object')
      .action(inSession(run, head)),
    defineCommand('export', 'Prints all entries, the oldest first, as JSON Lines or CEF.', {
      examples: ['touchstone audit export > audit.jsonl', 'touchstone audit export --cef --after 1000 > audit.cef'],
    })
      .option('--cef', 'in the Common Event Format of log collectors')
      .option('--after <seq>', 'only entries after this number', parseSeq)
      .action(inSession(run, exportAll)),
  ])
}

async function list({ store, io }: Session, { last, json }: { last: number; json?: true }): Promise<void> {
  const { seq } = await auditHead(store.database)
  const entries = await readAudit(store.database, seq - BigInt(last), last)
  if (json === true) return io.out(formatJson(entries.map(({ body, ...entry }) => ({ ...entry, ...bodyOf(body) }))))
  const rows = entries.map(({ seq: number, at, body }) => {
    const { who, act, subject, outcome, of, first } = bodyOf(body)
    const note = first === undefined ? of && `of ${of}` : `of ${of}, by ${first}`
    return [String(number), at, who, act, subject, outcome, note ?? '']
  })
  printTable(io.out, ['seq', 'time', 'who', 'act', 'on', 'outcome', ''], rows)
}

async function verify(
  session: Session,
  { head: given, json }: { head?: AuditHead | string; json?: true },
): Promise<void> {
  const { store, io } = session
  const signed = await signedHeads(session)
  const kept = given === undefined ? [] : [typeof given === 'string' ? await openGiven(session, given) : given]
  const verified = await verifyAudit(store.database, [...signed, ...kept], io.signal).catch((error: unknown) => {
    throw io.signal.aborted ? new CommandError('The check was interrupted.') : error
  })
  if (!verified.ok) {
    // A trail that was written anew is whole in itself. It differs in the entry of the head, however early it begins.
    const other =
      verified.kept === undefined
        ? '.'
        : `, and entries before it may be. It does not agree with the head ${describeHead(verified.kept)}.`
    throw new CommandError(`The audit trail is not intact: entry ${verified.seq} is wrong or missing${other}`)
  }
  if (json === true) return io.out(formatJson({ intact: true, head: verified.head, signedHeads: signed }))
  io.out(`${verified.head.seq} entries, each as it was written.`)
  io.out(`head ${formatHead(verified.head)}`)
  const newest = signed.at(-1)
  if (newest !== undefined) io.out(`signed heads that agree: ${signed.length}, the newest ${describeHead(newest)}`)
  else {
    const none = `signed heads that agree: none in ${auditHeadFile(session.config.dataDir)}.`
    io.out(`${none} Only a head that was kept elsewhere (--head) shows a trail that was cut or written anew.`)
  }
}

/** Reads the heads that the issuer signed each day. Throws for one that it did not sign. */
async function signedHeads({ config, store, io }: Session): Promise<readonly SignedHead[]> {
  const file = auditHeadFile(config.dataDir)
  const heads: SignedHead[] = []
  let revoked = 0
  const lines = await readHeads(file)
  const keys = lines.length === 0 ? [] : (await store.issuerKeys()).keys()
  for (const line of lines) {
    const opened = await openHead(line, keys)
    if (opened.ok) heads.push(opened.head)
    else if (opened.because === 'revoked') revoked += 1
    else throw new CommandError(`${file} holds a head that this issuer did not sign: «${line.slice(0, 40)}…»`)
  }
  if (revoked > 0) io.err(`Signed heads that count for nothing, because their key is revoked: ${revoked}`)
  return heads
}

async function openGiven({ store }: Session, line: string): Promise<SignedHead> {
  const opened = await openHead(line, (await store.issuerKeys()).keys())
  if (opened.ok) return opened.head
  const reason = opened.because === 'revoked' ? 'its key is revoked' : 'this issuer did not sign it'
  throw new CommandError(`The signed head counts for nothing: ${reason}.`)
}

function describeHead(head: AuditHead | SignedHead): string {
  const signed = 'keyId' in head ? `, signed with ${head.keyId} on ${new Date(head.at).toISOString()}` : ''
  return `${formatHead(head)}${signed}`
}

async function head(
  { store: { database, issuerKeys }, baseUrl, io }: Session,
  { json }: { json?: true },
): Promise<void> {
  const now = await auditHead(database)
  const signed = await signHead(await issuerKeys(), didOf(baseUrl), now, Date.now())
  if (json === true) return io.out(formatJson({ head: now, signed }))
  io.out(`head ${formatHead(now)}`)
  if (signed !== null) io.out(`signed ${signed}`)
}

const entriesAtOnce = 500

async function exportAll({ store, io }: Session, { cef, after = 0n }: { cef?: true; after?: bigint }): Promise<void> {
  const { seq: end } = await auditHead(store.database)
  let last = after
  while (last < end && !io.signal.aborted) {
    const entries = await readAudit(store.database, last, entriesAtOnce)
    for (const entry of entries) io.out(cef === true ? formatCef(entry) : formatLine(entry))
    const next = entries.at(-1)?.seq
    if (next === undefined) break
    last = next
    await io.drained?.()
  }
  if (io.signal.aborted)
    throw new CommandError(`The export was interrupted after entry ${last}. Continue it with --after ${last}.`)
}

function bodyOf(text: string): AuditBody {
  return (parseJsonObject(text) ?? {}) as AuditBody
}

function formatLine({ seq, at, body, hash }: AuditEntry): string {
  return JSON.stringify({ seq: seq.toString(), at, ...bodyOf(body), hash })
}

/** Formats an entry by ArcSight's Common Event Format: a header of fields between bars, then an extension of pairs. */
function formatCef({ seq, at, body, hash }: AuditEntry): string {
  const { who, act, subject, outcome, requestId, txHash, of } = bodyOf(body)
  const severity = act === 'recycle' || act.startsWith('key.') ? 6 : 3
  const head = ['CEF:0', 'Touchstone', 'touchstone', programVersion, act, act, String(severity)]
    .map(escapeHead)
    .join('|')
  const pairs = {
    externalId: String(seq),
    rt: String(Date.parse(at)),
    suser: who,
    duid: subject,
    outcome,
    cs1Label: 'hash',
    cs1: hash,
    cs2Label: 'request',
    cs2: requestId,
    cs3Label: 'transaction',
    cs3: txHash,
    cs4Label: 'of',
    cs4: of,
  }
  const extension = Object.entries(pairs).flatMap(([name, value]) => (value ? [`${name}=${escapeValue(value)}`] : []))
  return `${head}|${extension.join(' ')}`
}

const escapeHead = (text: string) => text.replaceAll(/[\\|]/g, '\\$&').replaceAll(/[\r\n]/g, ' ')
const escapeValue = (text: string) => text.replaceAll(/[\\=]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')

/** A signed head is opened later, with the keys of the issuer. */
function parseHead(text: string): AuditHead | string {
  if (text.length <= 1_000 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return text
  const [, seq, hash] = /^(\d{1,18}):(0x[0-9a-f]{64})$/.exec(text) ?? []
  return seq === undefined || hash === undefined
    ? rejectArgument('A head is <number>:<hash> or a JWS, as touchstone audit head prints them.')
    : { seq: BigInt(seq), hash }
}

const parseSeq = (text: string): bigint =>
  /^\d{1,18}$/.test(text) ? BigInt(text) : rejectArgument('It is the number of an entry, such as 1000.')
