/** `touchstone approval …`: irreversible acts that a second key or operator must approve (APPROVALS), their list and their decision. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { localActor } from '../db/audit.ts'
import { createKeyAuthentication } from '../access/api-keys.ts'
import { verbsOf } from '../access/rights.ts'
import { type Decider, formatWaiting } from '../access/approvals/approvals.ts'
import { type Approval, isApprovalId, parseFacts } from '../access/approvals/store.ts'
import { createLog } from '../lib/log.ts'
import { argument, defineCommand, defineGroup, type Help, inSession, textArgument } from './session/command.ts'
import { readTextFile } from './session/files.ts'
import type { RunWork, Session } from './session/session.ts'
import { CommandError, formatJson, printTable } from './session/output.ts'

export function approvalCommand(run: RunWork): Command {
  return defineGroup(
    'approval',
    'Requests for irreversible acts that a second key or operator must approve: the setting APPROVALS names the acts.',
    [
      defineCommand('list', 'Shows the requests that wait, the newest first.', {
        examples: ['touchstone approval list', 'touchstone approval list --all --json'],
      })
        .option('--all', 'decided and expired ones too')
        .option('--last <n>', 'how many, 1 to 1000', argument.count(1_000), 100)
        .option('--json', 'print a JSON array')
        .action(inSession(run, list)),
      defineCommand('show', 'Shows one request: what was asked for, by whom, and what became of it.', {
        examples: ['touchstone approval show k3x9a0qz12ab'],
      })
        .argument('<id>', 'id of the request', parseId)
        .option('--json', 'print a JSON object')
        .action(inSession(run, show)),
      decisionCommand(run, 'approve', 'Approves a request and does what it asks for, once.', {
        notes: `The one that asked cannot approve: for a request of this user of the machine give another user, GraphQL, or --key-file.
Nothing is done when the subject has changed since the request.`,
        examples: [
          'touchstone approval approve k3x9a0qz12ab',
          'touchstone approval approve k3x9a0qz12ab --key-file second.key',
        ],
      }),
      decisionCommand(run, 'reject', 'Rejects a request. The one that asked takes its own back with it.', {
        examples: ['touchstone approval reject k3x9a0qz12ab'],
      }),
    ],
  )
}

type Step = 'approve' | 'reject'
type Options = { readonly keyFile?: string; readonly json?: true }

function decisionCommand(run: RunWork, step: Step, description: string, help: Help): Command {
  return defineCommand(step, description, help)
    .argument('<id>', 'id of the request', parseId)
    .option('--key-file <file>', 'decides as the API key in this file, which needs the scope approve')
    .option('--json', 'print a JSON object')
    .action(inSession(run, (session, id: string, options: Options) => decide(session, step, id, options)))
}

/** Asks for an act, and prints what the request waits for. Returns the exit code 1, because nothing is done yet. */
export async function askForApproval(
  { store, io }: Session,
  { act, subject, requestKey = null }: Parameters<Session['store']['approvals']['request']>[0],
  json = false,
): Promise<number> {
  const asked = await store.approvals.request({ act, subject, requestKey })
  if (!asked.ok)
    throw new CommandError(
      asked.because === 'missing'
        ? `There is no ${subjectNames[act]} ${subject} on which this can be done.`
        : 'This key was used for another request.',
    )
  const { approval } = asked
  if (json) io.out(formatJson({ approval: toJson(approval) }))
  else io.out(`approval     ${approval.id}  ${approval.status}`)
  if (!json && approval.status === 'PENDING') io.out(`second one   touchstone approval approve ${approval.id}`)
  io.err(`touchstone: ${formatWaiting(approval)}`)
  return 1
}

const subjectNames = {
  recycle: 'asset',
  'batch-revoke': 'batch',
  'batch-restore': 'revoked batch',
  'key-deletion': 'active key',
} as const

async function list({ store, io }: Session, { all, last, json }: { all?: true; last: number; json?: true }) {
  const page = { after: null, backward: false, limit: last }
  const rows = await store.approvals.page(all === true ? {} : { status: 'PENDING' }, page)
  if (json === true) return io.out(formatJson(rows.map(toJson)))
  if (rows.length === 0) return io.out(all === true ? 'There is no request yet.' : 'No request waits for approval.')
  const cells = rows.map(({ id, act, subject, requestedBy, expiresAt, status, decidedBy }) => {
    return [id, act, subject, requestedBy, expiresAt, status, decidedBy ?? '']
  })
  printTable(io.out, ['id', 'act', 'on', 'asked by', 'until', 'status', 'decided by'], cells)
}

async function show({ store, io }: Session, id: string, { json }: { json?: true }): Promise<void> {
  const found = await store.approvals.find(id)
  if (found === null) throw new CommandError(`There is no request ${id}; see touchstone approval list --all.`)
  if (json === true) return io.out(formatJson(toJson(found)))
  for (const [label, value] of Object.entries(toJson(found)))
    io.out(
      `${label.padEnd(12)} ${typeof value === 'object' && value !== null ? JSON.stringify(value) : (value ?? '–')}`,
    )
}

function toJson({ pk: _pk, facts, ...approval }: Approval) {
  return { ...approval, facts: parseFacts(facts) }
}

async function decide(session: Session, step: Step, id: string, options: Options): Promise<number> {
  const { store, io } = session
  const by =
    options.keyFile === undefined ? { ...localActor(), key: null } : await keyIn(session, options.keyFile, step)
  const decided = await store.approvals[step](id, by)
  if (!decided.ok) throw new CommandError(`${id}: ${decided.message}`)
  const { approval } = decided
  if (options.json === true) io.out(formatJson(toJson(approval)))
  else io.out(`approval     ${id}  ${approval.status}`)
  if (options.json !== true && approval.txHash !== null) io.out(`transaction  ${approval.txHash}`)
  if (approval.status === 'FAILED') throw new CommandError(`${id}: ${approval.failure ?? 'the transaction failed.'}`)
  if (approval.status === 'APPROVED')
    io.err('touchstone: it is not done yet; the service carries it out. See touchstone approval show.')
  return approval.status === 'APPROVED' ? 1 : 0
}

const mostKeyBytes = 1_000

/** Reads an API key from a file. It has the rights that it has at the GraphQL host, from this machine. */
async function keyIn({ store, io }: Session, file: string, step: Step): Promise<Decider> {
  const text = await readTextFile(resolve(io.cwd, file), mostKeyBytes).catch(() => {
    throw new CommandError(`${file} cannot be read.`)
  })
  const authenticate = createKeyAuthentication({ keys: store.apiKeys, log: createLog(() => {}) })
  const found = await authenticate(`Bearer ${text?.trim() ?? ''}`, '', '127.0.0.1')
  if (!found.ok) throw new CommandError(`${file} holds no API key that is active and may be used from this machine.`)
  const { key } = found
  if (!verbsOf(key.scopes).includes('approve'))
    throw new CommandError(
      `Key ${key.id} lacks the scope approve, so it cannot ${step} here. Make one with: touchstone key create <name> --scope approve`,
    )
  return { who: `key:${key.id}`, key }
}

const parseId = textArgument(isApprovalId, 'An id has 12 letters and digits, as touchstone approval list shows it.')
