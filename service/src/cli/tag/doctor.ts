/**
 * `touchstone tag doctor` checks everything that decides whether the link of a tag verifies now. It has the order of the service (spec
 * §4.4, §7): link, keys, ledger, registration, chain. It uses no tap up and shows no key.
 */
import type { Command } from 'commander'
import { parseTokenId, type Verdict } from '@touchstone/verdict'
import { parseHex } from '../../lib/bytes.ts'
import { isChainUnavailable, reasonOf } from '../../lib/errors.ts'
import { parseDigitalLink, parsePassportPath } from '../../passport/digital-link.ts'
import { diagnoseTagUrl, type Diagnosis } from '../../tap/provisioning/doctor.ts'
import type { RegisteredTag, RegisteredBatch } from '../../tap/tag-registry.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { assertNotInterrupted, formatJson } from '../session/output.ts'
import { listUids } from './uids.ts'
import { formatRefusal } from './verify.ts'
import { parseTapBytes, parseTapUrl } from '../../tap/parameters.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'

type Options = { readonly uid?: readonly Uint8Array[]; readonly file?: string; readonly json?: true }

export function tagDoctorCommand(run: RunWork): Command {
  const description =
    'Explains whether the address of a tag verifies now, and why not: link, keys, ledger, registration, chain.'
  return defineCommand('doctor', description, {
    notes: `It tries the batches of this data folder, factory keys and published example keys, then reads the ledger, the registry of
tags and the chain. The tap is not consumed, and no key and no MAC is shown. Exit code 0 only when a tap with this address
would verify now, 1 when not, or when that cannot be found out.`,
    examples: ["touchstone tag doctor 'https://verify.example.com/api/verify?picc=…&cmac=…'"],
  })
    .argument('<url>', 'address that the tag gave, in quotes')
    .option('--uid <uids>', 'UIDs it may be, for a tag that hides its own or has its keys swapped', argument.uids)
    .option('--file <file>', 'file with such UIDs, one in each line, or a table with a column uid')
    .option('--json', 'print a JSON object')
    .action(inSession(run, doctor))
}

async function doctor(session: Session, url: string, { uid, file, json }: Options): Promise<number> {
  const { io } = session
  const uids = uid === undefined && file === undefined ? [] : await listUids(session.io, { uid, file })
  const report = await examine(session, url, uids)
  if (json === true) io.out(formatJson(report))
  else for (const line of format(report)) io.out(line)
  return report.ok ? 0 : 1
}

/** A `fault` keeps the tap from verifying; a `note` does not. */
type Finding = Readonly<{ code: string; text: string; severity: 'fault' | 'note' }>
/** `facts` are names and values, for the operator to read. */
type Stage = Readonly<{ findings: readonly Finding[]; facts: Readonly<Record<string, string | number>> }>
type Report = Omit<Diagnosis, 'ok' | 'findings'> & Readonly<{ ok: boolean }> & Stage

async function examine(session: Session, url: string, uids: readonly Uint8Array[]): Promise<Report> {
  const { store } = session
  const onUid = () => assertNotInterrupted(session.io.signal)
  const diagnosis = await diagnoseTagUrl(url, { batches: store.tagKeys.keys.candidates(), uids, onUid })
  const batch = diagnosis.batchId === null ? undefined : await store.tags.batch(diagnosis.batchId)
  const stages: Stage[] = [linkStage(session, url), keyStage(session, diagnosis, batch)]
  const uid = diagnosis.uid === null ? null : parseHex(diagnosis.uid)
  if (uid !== null) {
    const known = await store.tags.tagOfUid(uid)
    const { counter } = diagnosis
    if (counter !== null && batch !== undefined)
      stages.push(await ledgerStage(session, url, batch, { uid, known, counter, epoch: batch.epoch }))
    stages.push(registrationStage(known, diagnosis), await chainStage(session, url, { uid, known }))
  }
  const findings = stages.flatMap((stage) => stage.findings)
  if (!findings.some(isFault)) findings.push(...(await verifierFindings(session, url)))
  const facts = Object.assign({}, ...stages.map((stage) => stage.facts)) as Stage['facts']
  return { ...diagnosis, ok: !findings.some(isFault), findings, facts }
}

const isFault = ({ severity }: Finding): boolean => severity === 'fault'
const fault = (code: string, text: string): Finding => ({ code, text, severity: 'fault' })
const note = (code: string, text: string): Finding => ({ code, text, severity: 'note' })

function linkStage({ baseUrl }: Session, url: string): Stage {
  if (!URL.canParse(url)) return { findings: [], facts: {} }
  const { host, pathname } = new URL(url)
  const own = new URL(baseUrl).host
  const findings: Finding[] = []
  if (host !== own) {
    const text = `The link opens ${host}, and this service is ${own}: another service, or BASE_URL is wrong.`
    findings.push(fault('wrong_host', text))
  }
  if (targetOf(pathname) === null) {
    const text = 'No tap route has this path: /tap, /api/verify, /api/dpp/…, /01/{gtin}/21/{serial}, /token/{tokenId}.'
    findings.push(fault('unknown_path', text))
  }
  return { findings, facts: { host } }
}

type Target = { readonly tokenId: bigint } | ItemKey | 'any'

/** Returns what the path of a tap route names, or null for another path. */
function targetOf(path: string): Target | null {
  if (path === '/api/verify' || path === '/tap') return 'any'
  const [, token] = /^(?:\/api\/dpp)?\/token\/(\d+)$/.exec(path) ?? []
  const tokenId = token === undefined ? null : parseTokenId(token)
  if (tokenId !== null) return { tokenId }
  const link = path.startsWith('/api/dpp/') ? parsePassportPath(path) : parseDigitalLink(path)
  return link.kind === 'item' ? { gtin: link.gtin, serial: link.serial } : null
}

/** Names the keys and the batch. The status is that of the database, which all instances share. */
function keyStage({ store }: Session, diagnosis: Diagnosis, batch: RegisteredBatch | undefined): Stage {
  const { findings, uid, counter, batchId, tagByte, macInput, scheme, fileKeyNo } = diagnosis
  const isRevoked = batch?.status === 'revoked' && !findings.some(({ code }) => code === 'revoked_batch')
  return {
    findings: [
      ...findings.map(({ code, text }) => fault(code, text)),
      ...(isRevoked ? [fault('revoked_batch', 'The batch is revoked.')] : []),
      ...(store.tagKeys.keys.candidates().length === 0
        ? [fault('no_keys', 'This verifier holds no tag keys: set TAG_KEK and see touchstone tag batch list.')]
        : []),
    ],
    facts: withoutNull({
      uid,
      counter,
      batch: batchId,
      status: batch?.status ?? null,
      epoch: batch?.epoch ?? null,
      'tag byte': tagByte,
      'mac input': macInput,
      derivation: scheme,
      'file key slot': fileKeyNo,
    }),
  }
}

type Known = Readonly<{ uid: Uint8Array; known: RegisteredTag | undefined }>
type Tapped = Known & Readonly<{ counter: number; epoch: number }>

/** Holds the counter against the ledger. Times are those of the database. */
async function ledgerStage(
  { store, chain }: Session,
  url: string,
  batch: RegisteredBatch,
  tapped: Tapped,
): Promise<Stage> {
  const { uid, counter, epoch } = tapped
  const lastCounter = await store.tags.lastCounterOf(uid, batch)
  const facts = { 'last counter': lastCounter }
  const use = await store.tags.useOf({ uid, epoch, counter })
  if (use === undefined) return { findings: unusedFindings(tapped, lastCounter), facts }
  const windowSeconds = chain?.pages.windowSeconds ?? 0
  const isSame = Buffer.compare(use.picc, parseTapBytes(url)?.picc ?? new Uint8Array()) === 0
  return {
    findings: [isSame ? usedFinding(use, { lastCounter, windowSeconds }) : otherBytes(use, counter)],
    facts: { ...facts, used: formatTime(use.firstSeen) },
  }
}

type Use = NonNullable<Awaited<ReturnType<Session['store']['tags']['useOf']>>>

function otherBytes({ firstSeen }: Use, counter: number): Finding {
  const text = `Counter ${counter} was used at ${formatTime(firstSeen)} with other bytes: another chip has these keys, or SDM was switched on again.`
  return fault('other_bytes', text)
}

/** A link passes again for a while after its first use. */
function usedFinding(
  { firstSeen, ageSeconds }: Use,
  { lastCounter, windowSeconds }: { readonly lastCounter: number; readonly windowSeconds: number },
): Finding {
  const used = `Used at ${formatTime(firstSeen)}, last counter ${lastCounter}`
  if (ageSeconds >= windowSeconds) return fault('replayed', `${used}: a link verifies once. Tap the tag again.`)
  const until = new Date(firstSeen.getTime() + windowSeconds * 1_000)
  return note('used', `${used}; the same link passes again until ${formatTime(until)}.`)
}

function unusedFindings({ known, counter, epoch }: Tapped, lastCounter: number): Finding[] {
  if (known !== undefined && known.epoch > epoch) {
    const text = `The tag was registered again under epoch ${known.epoch}, batch ${known.batchId}: links of epoch ${epoch} verify no more.`
    return [fault('old_epoch', text)]
  }
  if (counter > lastCounter) return []
  const baseline = known?.baselineCounter ?? 0
  const text =
    counter <= baseline
      ? `Counter ${counter} was used up when the tag was registered, at counter ${baseline}.`
      : `Counter ${counter} is below the last counter ${lastCounter}: a link verifies only before a later one, and once.`
  return [fault('replayed', text)]
}

function otherBatch({ batchId, isRegistered }: RegisteredTag): string {
  const claim = isRegistered ? 'is registered in batch' : 'was first tapped with the keys of batch'
  return `The tag ${claim} ${batchId}, so that the keys of no other batch verify it. Register a chip that was written anew: touchstone tag import.`
}

function registrationStage(known: RegisteredTag | undefined, { batchId }: Diagnosis): Stage {
  const isElsewhere = known !== undefined && batchId !== null && known.batchId !== batchId
  const findings = isElsewhere ? [fault('other_batch', otherBatch(known))] : []
  if (known === undefined || !known.isRegistered) {
    const text = 'The tag is not registered here: touchstone tag import, or touchstone asset bind.'
    return { findings: [note('unregistered', text), ...findings], facts: {} }
  }
  const { tokenId, gtin, serial } = known
  return {
    findings,
    facts: withoutNull({
      registered: tokenId === null ? 'without an asset' : `asset ${tokenId}`,
      item: gtin === null ? null : `${gtin}/${serial}`,
    }),
  }
}

/** Reads the binding from the chain, at the block that it names. */
async function chainStage({ chain, store }: Session, url: string, { uid, known }: Known): Promise<Stage> {
  const nothing = { findings: [], facts: {} }
  if (chain === null) {
    const text = 'No chain is configured here (CHAIN_RPC_URLS, CHAIN_CONTRACT), so that the binding cannot be read.'
    return { ...nothing, findings: [fault('no_chain', text)] }
  }
  if (chain.tagHash === undefined)
    return {
      ...nothing,
      findings: [fault('no_pepper', 'TAG_PEPPER is not set, so that the tag cannot be found on chain.')],
    }
  try {
    const { asset, block } = await chain.verdicts.byTag(chain.tagHash(uid), chain.formerTagHash?.(uid))
    const facts = { block: `${block.number} ${block.hash}` }
    if (asset === null) {
      const text =
        'The tag is bound to no asset on chain: touchstone asset bind, or set the pepper of the binding as TAG_PEPPER or TAG_PEPPER_PREVIOUS.'
      return { facts, findings: [fault('unbound', text)] }
    }
    const { verdict } = asset
    const item = await store.items.itemOfToken(BigInt(verdict.token_id))
    return {
      facts: { ...facts, bound: `asset ${verdict.token_id}`, state: verdict.state },
      findings: [...assetFindings(verdict, known), ...itemFindings(url, verdict, item)],
    }
  } catch (error) {
    if (!isChainUnavailable(error)) throw error
    return { ...nothing, findings: [fault('chain_unavailable', `The binding cannot be read now: ${reasonOf(error)}`)] }
  }
}

function assetFindings({ token_id: tokenId, flagged }: Verdict, known: RegisteredTag | undefined): Finding[] {
  const registered = known?.tokenId ?? null
  return [
    ...(flagged
      ? [note('flagged', `Asset ${tokenId} is flagged: its tag verifies, and every verdict says that it is flagged.`)]
      : []),
    ...(registered !== null && String(registered) !== tokenId
      ? [note('other_asset', `The tag is registered with asset ${registered}, and bound to ${tokenId} on chain.`)]
      : []),
  ]
}

function itemFindings(url: string, { token_id: tokenId }: Verdict, item: ItemKey | null): Finding[] {
  const target = URL.canParse(url) ? targetOf(new URL(url).pathname) : null
  if (target === null || target === 'any') return []
  const isSame =
    'tokenId' in target
      ? String(target.tokenId) === tokenId
      : target.gtin === item?.gtin && target.serial === item.serial
  const own = item === null ? `asset ${tokenId}, which has no GTIN and serial` : `item ${item.gtin}/${item.serial}`
  return isSame ? [] : [fault('wrong_item', `The link names another item than the tag is bound to: ${own}.`)]
}

/** Lets the verifier itself judge the tap, without consuming it. Its answer decides where the stages above found no fault. */
async function verifierFindings({ chain }: Session, url: string): Promise<Finding[]> {
  const outcome = await chain?.resolveTap({ ...parseTapUrl(url), consume: false })
  if (outcome === undefined || outcome.kind === 'resolved') return []
  if (outcome.kind === 'challenge')
    return [fault('tap_again', 'TAP_CHALLENGE is on: the next tap must follow this one within 30 seconds.')]
  if (outcome.kind === 'replayed')
    return [fault('other_client', 'TAP_BIND is on: only the browser that presented this tap first may repeat it.')]
  return [fault('not_verified', formatRefusal(outcome))]
}

function format({ ok, findings, facts }: Report): string[] {
  return [
    ...(ok ? ['Nothing is wrong with this address: a tap with it would verify now.'] : []),
    ...findings.map(({ code, text, severity }) => `${severity === 'note' ? 'Note: ' : ''}${text} [${code}]`),
    ...Object.entries(facts).map(([name, value]) => `  ${name.padEnd(14)} ${value}`),
  ]
}

function withoutNull(facts: Readonly<Record<string, string | number | null>>): Record<string, string | number> {
  return Object.fromEntries(Object.entries(facts).flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
}

function formatTime(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
