/** `touchstone verify`: checks a verdict of the service, or a saved proof bundle, without trust in the service. */
import { readFile, stat } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import {
  checkProofBundle,
  deployments,
  parseTokenId,
  prove,
  recheck,
  recheckProofBundle,
  type Hex,
  type Report,
} from '@touchstone/verdict'
import { parseJson } from '../lib/json.ts'
import { fetchJson } from './payments/fetch-json.ts'

import { argument, defineCommand } from './session/command.ts'
import { CommandError, formatError } from './session/session.ts'

/** Several times the size of a verdict with the longest metadata. */
const maxVerdictBytes = 65_536
/** A bundle holds a block header and two Merkle proofs; a metadata document has at most 16 kB. */
const maxFileBytes = 1_048_576

/** The exit codes: 0, and only 0, is a yes. */
const exitCodes = { agrees: 0, differs: 1, undecided: 2 } as const

const conclusions = {
  agrees: 'Every field agrees with the chain.',
  differs: 'This verdict does not agree with the chain.',
  undecided: 'NOT DECIDED: no field disagrees, but what is marked ? was not checked. Do not rely on this verdict.',
} as const

type Options = {
  rpc: string[]
  agree?: number
  contract?: Hex
  deployment?: keyof typeof deployments
  prove?: boolean
  codeHash?: Hex
  blockHash?: Hex
  metadata?: string
  baseUrl: string
}

export function verifyCommand(): Command {
  return defineCommand(
    'verify',
    'Checks a verdict field by field against the chain, or a saved proof bundle offline.',
    {
      notes: [
        'Anyone can deploy a contract that says anything, so name the one you trust.',
        'Exit code 0: every field agrees; 1: one does not; 2: not decided, because the contract or the block is not pinned, nothing could',
        'be read, or the command line is wrong.',
      ].join('\n'),
      examples: [
        'touchstone verify 4 --rpc http://127.0.0.1:8545 --deployment local --prove',
        'touchstone verify https://verify.example/api/asset/4 --rpc https://rpc.example --contract 0x5FbDB2315678afecb367f032d93F642f64180aa3',
        'touchstone verify proof-4.json --rpc http://127.0.0.1:8545 --deployment local',
      ],
    },
  )
    .argument('<verdict>', 'URL of a verdict, a token id, or the file of a proof bundle')
    .option(
      '--rpc <url>',
      'JSON-RPC provider to check against: one you trust, not the service’s; may be repeated',
      collect,
      [],
    )
    .option('--agree <number>', 'how many of several providers must agree; all by default', argument.count(20))
    .option('--contract <address>', 'core contract that you trust', argument.address)
    .addOption(new Option('--deployment <name>', 'known deployment that you trust').choices(Object.keys(deployments)))
    .option('--prove', 'check a Merkle proof of the record too, so that the provider can only withhold, not lie')
    .option('--code-hash <hash>', 'with proofs: the published keccak256 of the contract code', argument.hash)
    .option('--block-hash <hash>', 'with a bundle: the hash of its block, from a source that you trust', argument.hash)
    .option('--metadata <file>', 'metadata document as it was hashed: checks the texts against the hash on chain')
    .option('--base-url <url>', 'service that is asked for a token id', 'http://127.0.0.1:8080')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exitCodes.undecided))
    .action(async (target: string, options: Options) => {
      try {
        const report = await verify(target, options)
        process.stdout.write(`${formatReport(report)}\n`)
        process.exitCode = exitCodes[report.outcome]
      } catch (error) {
        process.stderr.write(`touchstone: ${formatError(error)}\n`)
        process.exitCode = exitCodes.undecided
      }
    })
}

function collect(url: string, before: readonly string[]): string[] {
  return [...before, url]
}

/** Throws a sentence where nothing could be checked. */
async function verify(target: string, { rpc, baseUrl, metadata, ...pins }: Options): Promise<Report> {
  const url = /^\d+$/.test(target) ? `${baseUrl.replace(/\/$/, '')}/api/asset/${target}` : target
  if (!URL.canParse(url)) {
    const bundle = parseJson(await readText(target, 'neither a URL nor a token id, and no file of a proof bundle'))
    return rpc.length === 0 ? checkProofBundle(bundle, pins) : recheckProofBundle(bundle, { ...pins, rpcUrl: rpc })
  }
  if (rpc.length === 0)
    throw new CommandError('Name a JSON-RPC provider that you trust, such as --rpc https://rpc.example.')
  const { status, body: verdict } = await fetchJson(new URL(url), { redirect: 'follow', maxBytes: maxVerdictBytes })
  if (status !== 200) throw new CommandError(`The service answered ${status} ${parseErrorCode(verdict)}`.trim())
  const document = metadata === undefined ? undefined : await readText(metadata, 'not a readable file')
  const options = { ...pins, rpcUrl: rpc, metadata: document }
  const report = pins.prove === true ? await prove(verdict, options) : await recheck(verdict, options)
  const asked = parseTokenId(/\/api\/asset\/(\d+)\/?$/.exec(new URL(url).pathname)?.[1] ?? '')
  return asked === null ? report : withAsked(report, asked.toString(), verdict)
}

async function readText(file: string, otherwise: string): Promise<string> {
  const { size } = await stat(file).catch(() => {
    throw new CommandError(`"${file.slice(0, 80)}" is ${otherwise}.`)
  })
  if (size > maxFileBytes)
    throw new CommandError(`"${file.slice(0, 80)}" has more than ${maxFileBytes / 1_048_576} MB.`)
  return readFile(file, 'utf8')
}

/** Adds a check that the verdict is about the token that was asked for. */
function withAsked(report: Report, asked: string, verdict: unknown): Report {
  const given = (verdict as { token_id?: unknown } | null)?.token_id
  const ok = given === asked
  const check = { field: 'token asked for', ok, claimed: ok ? asked : 'another token', found: asked }
  return { ...report, ...(!ok && { ok, outcome: 'differs' }), checks: [check, ...report.checks] }
}

function formatReport({ outcome, checks }: Report): string {
  const rows = checks.map(({ field, ok, undecided, claimed, found }) => {
    const mark = ok ? 'ok     ' : undecided ? '?      ' : 'DIFFERS'
    return `  ${mark} ${field.padEnd(24)} ${claimed}${ok ? '' : undecided ? `  (${found})` : `  (chain: ${found})`}`
  })
  return [...rows, conclusions[outcome]].join('\n')
}

function parseErrorCode(body: unknown): string {
  const error = (body as { error?: { code?: unknown } } | null)?.error
  return typeof error?.code === 'string' ? error.code.replace(/[^A-Z_]/g, '').slice(0, 40) : ''
}
