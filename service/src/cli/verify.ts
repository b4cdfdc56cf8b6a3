/** `touchstone verify`: checks a verdict of the service against the chain, field by field, without trust in the service. */
import type { Command } from 'commander'
import { parseTokenId, prove, recheck, type Report } from '@touchstone/verdict'
import { fetchJson } from './payments/fetch-json.ts'
import { defineCommand } from './session/command.ts'

/** Several times the size of a verdict with the longest metadata. */
const maxVerdictBytes = 65_536

type Options = { rpc: string; prove?: boolean; codeHash?: string; baseUrl: string }

export function verifyCommand(): Command {
  return defineCommand(
    'verify',
    'Fetches a verdict and re-derives it from the chain; exit code 0 when every field agrees, 1 when not.',
    { examples: ['touchstone verify 4 --rpc http://127.0.0.1:8545 --prove'] },
  )
    .argument('<verdict>', 'URL of a verdict, or a token id')
    .requiredOption('--rpc <url>', 'JSON-RPC provider to check against: choose one you trust, not the service’s')
    .option('--prove', 'check a Merkle proof of the record too, so that the provider can only withhold, not lie')
    .option('--code-hash <hash>', 'with --prove: the published keccak256 of the contract code, 0x and 64 hex digits')
    .option('--base-url <url>', 'service that is asked for a token id', 'http://127.0.0.1:8080')
    .action(verify)
}

async function verify(target: string, options: Options): Promise<void> {
  const url = /^\d+$/.test(target) ? `${options.baseUrl.replace(/\/$/, '')}/api/asset/${target}` : target
  if (!URL.canParse(url)) throw new Error(`"${target.slice(0, 80)}" is neither a URL nor a token id.`)
  const { status, body: verdict } = await fetchJson(new URL(url), { redirect: 'follow', maxBytes: maxVerdictBytes })
  if (status !== 200) throw new Error(`The service answered ${status} ${parseErrorCode(verdict)}`.trim())
  const codeHash = options.codeHash as `0x${string}` | undefined
  const report =
    options.prove === true
      ? await prove(verdict, { rpcUrl: options.rpc, ...(codeHash && { codeHash }) })
      : await recheck(verdict, { rpcUrl: options.rpc })
  const asked = parseTokenId(/\/api\/asset\/(\d+)\/?$/.exec(new URL(url).pathname)?.[1] ?? '')
  const all = asked === null ? report : withAsked(report, asked.toString(), verdict)
  process.stdout.write(`${formatReport(all)}\n`)
  process.exitCode = all.ok ? 0 : 1
}

/** Adds a check that the verdict is about the token that was asked for. */
function withAsked(report: Report, asked: string, verdict: unknown): Report {
  const given = (verdict as { token_id?: unknown } | null)?.token_id
  const ok = given === asked
  return {
    ok: report.ok && ok,
    checks: [{ field: 'token asked for', ok, claimed: ok ? asked : 'another token', found: asked }, ...report.checks],
  }
}

function formatReport(report: Report): string {
  const rows = report.checks.map(
    ({ field, ok, claimed, found }) =>
      `${ok ? '  ok     ' : '  DIFFERS'} ${field.padEnd(24)} ${claimed}${ok ? '' : `  (chain: ${found})`}`,
  )
  return [
    ...rows,
    report.ok ? 'Every field agrees with the chain.' : 'This verdict does not agree with the chain.',
  ].join('\n')
}

function parseErrorCode(body: unknown): string {
  const error = (body as { error?: { code?: unknown } } | null)?.error
  return typeof error?.code === 'string' ? error.code.replace(/[^A-Z_]/g, '').slice(0, 40) : ''
}
