/** `touchstone verify` and `touchstone prove`: check a verdict of the service, or a saved proof bundle, without trust in the service. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import {
  checkProofBundle,
  deployments,
  endpointHost,
  parseTokenId,
  parseUniqueJson,
  prove,
  recheck,
  recheckProofBundle,
  type Hex,
  type Report,
} from '@touchstone/verdict'
import { textWithin } from '../lib/bytes.ts'
import { isObject } from '../lib/json.ts'
import { fetchJson } from './payments/fetch-json.ts'
import { argument, defineCommand, repeated } from './session/command.ts'
import { coloured, CommandError, formatError, formatJson } from './session/output.ts'

/** Several times the size of a verdict with the longest metadata. */
const maxVerdictBytes = 65_536
/** A bundle holds a block header and two Merkle proofs; a metadata document has at most 16 kB. */
const maxFileBytes = 1_048_576

/** The exit codes: 0, and only 0, is a yes. */
const exitCodes = { agrees: 0, differs: 1, undecided: 2 } as const

type Options = {
  rpc: string[]
  agree?: number
  contract?: Hex
  deployment?: keyof typeof deployments
  prove?: boolean
  codeHash?: Hex
  recordsSlot?: bigint
  blockHash?: Hex
  metadata?: string
  maxAge?: number
  baseUrl: string
  json?: true
}

export function verifyCommand(): Command {
  return checkCommand('verify', 'Checks a verdict field by field against the chain, or a saved proof bundle offline.', [
    'touchstone verify 4 --rpc http://127.0.0.1:8545 --deployment local --prove',
    'touchstone verify https://verify.example/api/asset/4 --rpc https://rpc.example --contract 0x5FbDB2315678afecb367f032d93F642f64180aa3',
    'touchstone verify proof-4.json --rpc http://127.0.0.1:8545 --deployment local',
  ]).addOption(
    new Option('--prove', 'check a Merkle proof too, so that the provider cannot lie about the record of a block'),
  )
}

export function proveCommand(): Command {
  return checkCommand('prove', 'Checks a verdict as verify does, and its record by a Merkle proof under the block.', [
    'touchstone prove 4 --rpc http://127.0.0.1:8545 --deployment local',
  ]).addOption(new Option('--prove').default(true).hideHelp())
}

function checkCommand(name: string, description: string, examples: readonly string[]): Command {
  return defineCommand(name, description, {
    notes: [
      'Anyone can deploy a contract that says anything, so name the one you trust.',
      'Exit code 0: every field agrees; 1: one does not; 2: not decided, because the contract or the block is not pinned, nothing could',
      'be read, or the command line is wrong.',
    ].join('\n'),
    examples,
  })
    .argument('<verdict>', 'URL of a verdict, a token id, or the file of a proof bundle')
    .addOption(
      new Option('--rpc <url>', 'JSON-RPC provider to check against: one you trust, not the service’s; may be repeated')
        .argParser(repeated(String))
        .default([], 'none'),
    )
    .option('--agree <number>', 'how many of several providers must agree; all by default', argument.count(20))
    .option('--contract <address>', 'core contract that you trust', argument.address)
    .addOption(
      new Option(
        '--deployment <name>',
        'known deployment that you trust; local and local-v1 are chains of npm start, and no other',
      )
        .choices(Object.keys(deployments))
        .conflicts('contract'),
    )
    .option('--code-hash <hash>', 'with proofs: the published keccak256 of the contract code', argument.hash)
    .option('--records-slot <number>', 'with proofs: slot of the mapping that holds the records', argument.slot)
    .option('--block-hash <hash>', 'with a bundle: the hash of its block, from a source that you trust', argument.hash)
    .option('--metadata <file>', 'metadata document as it was hashed: checks the texts against the hash on chain')
    .option(
      '--max-age <seconds>',
      'how much older than the latest block the block may be; 3600 by default, any age for a bundle',
      argument.count(999_999_999),
    )
    .option('--base-url <url>', 'service that is asked for a token id', 'http://127.0.0.1:8080')
    .option('--json', 'print the report as JSON')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exitCodes.undecided))
    .action(async (target: string, options: Options) => {
      try {
        const report = await verify(target, options)
        process.stdout.write(`${options.json === true ? formatJson(report) : formatReport(report)}\n`)
        process.exitCode = exitCodes[report.outcome]
      } catch (error) {
        process.stderr.write(`touchstone: ${formatError(error)}\n`)
        process.exitCode = exitCodes.undecided
      }
    })
}

/** Throws a sentence where nothing could be checked. */
async function verify(target: string, options: Options): Promise<Report> {
  const { rpc, baseUrl, metadata, maxAge, ...pins } = options
  const place = placeOf(target, baseUrl)
  rejectIgnored(options, place.url === null)
  const hosts = rpc.map((text) => endpointHost(httpUrl(text, '--rpc').href))
  const isLocal = pins.deployment !== undefined && deployments[pins.deployment]?.contract === deployments.local.contract
  if (isLocal && !hosts.every((host) => host.startsWith('localhost:')))
    throw new CommandError(
      `--deployment ${pins.deployment} is the chain of npm start on this machine; elsewhere anyone can deploy at its address: name your contract with --contract.`,
    )
  if (place.url === null) {
    const bundle = parseBundle(await readText(target, 'The file', notATarget))
    if (rpc.length === 0) return checkProofBundle(bundle, pins)
    return recheckProofBundle(bundle, { ...pins, rpcUrl: rpc, maxAgeSeconds: maxAge })
  }
  if (rpc.length === 0)
    throw new CommandError('Name a JSON-RPC provider that you trust, such as --rpc https://rpc.example.')
  const document = metadata === undefined ? undefined : await readText(metadata, 'The file of --metadata')
  const verdict = await fetchVerdict(place.url)
  const asking = { ...pins, tokenId: place.asked, rpcUrl: rpc, metadata: document, maxAgeSeconds: maxAge }
  return pins.prove === true ? prove(verdict, asking) : recheck(verdict, asking)
}

/** The place of a verdict. `asked` is the token that the target names, if it names one; `url` is null for a file. */
type Place = { readonly url: URL; readonly asked?: bigint | undefined } | { readonly url: null }

/** The target is not repeated: a mistyped URL may hold a password. */
const notATarget =
  'The verdict is neither a URL with http:// or https://, nor a token id, nor a file of a proof bundle.'

function placeOf(target: string, baseUrl: string): Place {
  if (/^\d+$/.test(target)) {
    const asked = tokenIdOf(target)
    const url = httpUrl(baseUrl, '--base-url')
    url.pathname = `${url.pathname.replace(/\/$/, '')}/api/asset/${asked}`
    return { url, asked }
  }
  if (!/^https?:/i.test(target) || !URL.canParse(target)) return { url: null }
  const url = httpUrl(target, 'The URL')
  const [, segment] = /\/api\/asset\/([^/]+)\/?$/.exec(url.pathname) ?? []
  return {
    url,
    asked: segment === undefined ? undefined : tokenIdOf(segment.replaceAll(/%3\d/g, (digit) => digit.slice(2))),
  }
}

function httpUrl(text: string, name: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new CommandError(`${name} is no URL with http:// or https://.`)
  if (url.username !== '' || url.password !== '')
    throw new CommandError(`${name} holds a user name or password: leave it out.`)
  return url
}

function tokenIdOf(text: string): bigint {
  const id = parseTokenId(text)
  if (id === null) throw new CommandError('A token id is a decimal number below 2^256, such as 5.')
  return id
}

async function fetchVerdict(url: URL): Promise<unknown> {
  const { status, body } = await fetchJson(url, { redirect: 'follow', maxBytes: maxVerdictBytes })
  if (status !== 200) throw new CommandError(`The service answered ${`${status} ${parseErrorCode(body)}`.trim()}.`)
  if (body === null)
    throw new CommandError(
      'The service answered with no JSON, or with JSON that holds a name twice: give the URL of a verdict, such as https://verify.example/api/asset/5.',
    )
  if (isObject(body) && Object.hasOwn(body, 'proof'))
    throw new CommandError('The service answered with a proof bundle: save it, and name the file.')
  return body
}

function parseBundle(text: string): unknown {
  const bundle = parseUniqueJson(text)
  const advice = 'save what GET /api/asset/{tokenId}/proof answers.'
  if (bundle === undefined) throw new CommandError(`The file holds no JSON, or a name twice: ${advice}`)
  if (isObject(bundle) && Object.hasOwn(bundle, 'chainRef'))
    throw new CommandError(`The file holds a verdict without its proof: ${advice}`)
  return bundle
}

/** Rejects options that have no effect on this target: the user would take them for checks. */
function rejectIgnored(options: Options, isBundle: boolean): void {
  const { rpc, prove: isProven, codeHash, recordsSlot, blockHash, metadata, agree, maxAge } = options
  const ignored: [value: unknown, sentence: string][] = isBundle
    ? [
        [metadata, '--metadata is for a verdict: a bundle does not prove the hash of the metadata.'],
        [rpc.length === 0 ? agree : undefined, '--agree needs --rpc.'],
        [rpc.length === 0 ? maxAge : undefined, '--max-age needs --rpc.'],
      ]
    : [
        [isProven ? undefined : codeHash, '--code-hash needs --prove.'],
        [isProven ? undefined : recordsSlot, '--records-slot needs --prove.'],
        [blockHash, '--block-hash is for a bundle: the block of a verdict is held against the chain of --rpc.'],
      ]
  for (const [value, sentence] of ignored) if (value !== undefined) throw new CommandError(sentence)
}

/** Reads a document. A FIFO or a device is rejected, because it may never end. */
async function readText(file: string, name: string, missing = `${name} does not exist.`): Promise<string> {
  const found = await stat(file).catch(() => null)
  if (found === null) throw new CommandError(missing)
  if (!found.isFile()) throw new CommandError(`${name} is not a regular file: save the document, and name that file.`)
  const text = await textWithin(createReadStream(file), maxFileBytes).catch(() => {
    throw new CommandError(`${name} cannot be read: look at its permissions.`)
  })
  if (text === null) throw new CommandError(`${name} has more than ${maxFileBytes / 1_048_576} MB.`)
  return text
}

function formatReport({ outcome, checks }: Report): string {
  const rows = checks.map(({ field, ok, undecided, claimed, found }) => {
    const mark = ok
      ? coloured('green', 'ok     ')
      : undecided
        ? coloured('yellow', '?      ')
        : coloured('red', 'DIFFERS')
    return `  ${mark} ${field.padEnd(24)} ${claimed}${ok ? '' : undecided ? `  (${found})` : `  (found: ${found})`}`
  })
  return [...rows, ...conclusions(outcome, checks)].join('\n')
}

function conclusions(outcome: Report['outcome'], checks: Report['checks']): string[] {
  if (outcome === 'differs') return ['This verdict does not agree with the chain.']
  if (outcome === 'undecided') {
    const reason = checks.some(({ ok, undecided }) => !ok && !undecided)
      ? 'the providers do not agree with each other'
      : 'no field disagrees, but what is marked ? was not checked'
    return [`NOT DECIDED: ${reason}. Do not rely on this verdict.`]
  }
  const conclusion = checks.every(({ ok }) => ok)
    ? 'Every field agrees with the chain.'
    : 'As many providers as you asked for agree in every field. Others do not: see the marked rows.'
  const isChecked = checks.some(({ field }) => field === 'metadata.texts')
  const hasTexts = checks.some(({ field }) => field === 'untrusted')
  return hasTexts && !isChecked ? [conclusion, uncheckedTexts] : [conclusion]
}

const uncheckedTexts =
  'Not checked: the texts in untrusted, which are the minter’s. For a verdict, --metadata holds them against the chain.'

function parseErrorCode(body: unknown): string {
  const error = (body as { error?: { code?: unknown } } | null)?.error
  return typeof error?.code === 'string' ? error.code.replace(/[^A-Z_]/g, '').slice(0, 40) : ''
}
