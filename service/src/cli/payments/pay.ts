/** `touchstone pay`: buys the attestation of one asset at a gateway and verifies it (spec §4.8). */
import type { Command } from 'commander'
import {
  checksumAddress,
  lifecycleStates,
  parseTokenId,
  verifyAttestation,
  type AttestationReport,
  type Hex,
} from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { bytesToHex, formatUnits } from 'viem/utils'
import { privateKeyToAccount } from 'viem/accounts'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { moneyAccounts } from '../../chain/devchain/test-money.ts'
import { readConfig } from '../../app/config/config.ts'
import type { Bought } from './buy.ts'
import { fetchJson } from './fetch-json.ts'
import { isIdentifier } from '../../payments/x402/identifier.ts'
import { parseAddress } from '../../domain/address.ts'
import { defineCommand } from '../session/command.ts'
import { formatJson } from '../session/output.ts'

type Options = {
  gateway: string
  max: string
  signer?: string
  contract?: string
  id?: string
  eas?: true
  json?: true
}

/** How far the clock of a gateway may be behind this machine's, in seconds. */
const clockTolerance = 60

export function payCommand(): Command {
  return defineCommand('pay', 'Buys the attestation of an asset at a gateway and verifies it.', {
    notes: `Environment: PAYER_KEY, the private key that pays (USDC on Base Sepolia, no ether needed). Without it, a gateway on this
machine is paid by the payer of the demonstration.
Exit code 0: the attestation is valid; 1: it is not, or nothing was bought, and stderr says which.`,
    examples: [
      'touchstone pay 4',
      'PAYER_KEY=0x… touchstone pay 1042 --gateway https://gateway.example.com --signer 0x… --json > proof.json',
    ],
  })
    .argument('<assetId>', 'decimal token id')
    .option('--gateway <url>', 'the gateway', 'http://127.0.0.1:8081')
    .option('--max <usdc>', 'the most to pay, in USDC', '0.1')
    .option('--signer <address>', 'accept this signer only, not any key that the gateway publishes')
    .option('--contract <address>', 'accept attestations of this core contract only')
    .option('--id <id>', 'a name for this purchase: bought again under it, it is not charged again', parsePurchaseId)
    .option('--eas', 'ask for the EAS off-chain attestation too, for tools that read those')
    .option('--json', 'print the attestation as received')
    .action(pay)
}

async function pay(assetId: string, options: Options): Promise<void> {
  const tokenId = parseTokenId(assetId)
  if (tokenId === null) throw new Error(`"${assetId.slice(0, 80)}" is not a decimal token id, such as 5.`)
  const most = parseDollars(options.max)
  if (most === null) throw new Error('--max is an amount in USDC, such as 0.1.')
  const signer = parseOptionalAddress('--signer', options.signer)
  const contract = parseOptionalAddress('--contract', options.contract)
  const gateway = parseGateway(options.gateway)
  const account = payerOf(readConfig(process.env).gateway.payerKey, gateway)

  // Checked before any money moves: an attestation of a gateway without keys could not be verified.
  const keysUrl = new URL('.well-known/attestation.json', gateway)
  const before = await fetchJson(keysUrl)
  if (before.status !== 200) throw new Error(`${gateway.origin} publishes no attestation keys: it is no gateway.`)
  const { buyAttestation } = await import('./buy.ts')
  const asked = Date.now()
  const bought = await buyAttestation({
    gateway,
    tokenId,
    account,
    most,
    eas: options.eas === true,
    identifier: options.id,
  })
  // An announced key may have become active meanwhile.
  const after = await fetchJson(keysUrl).catch(() => before)
  const { body: keys } = after.status === 200 ? after : before
  const report = verifyAttestation(bought.answer, { keys, tokenId, signer, contract })
  if (options.json === true) process.stdout.write(`${formatJson(bought.answer)}\n`)
  const lines = formatPurchase(bought, report, { payer: account.address, pinned: signer !== undefined, asked })
  ;(options.json === true ? process.stderr : process.stdout).write(`${lines.join('\n')}\n`)
  process.exitCode = report.ok ? 0 : 1
}

/** Formats the attestation for the buyer. The facts of an invalid or partly signed one are left out. */
function formatPurchase(
  { answer, terms }: Bought,
  report: AttestationReport,
  { payer, pinned, asked }: { readonly payer: string; readonly pinned: boolean; readonly asked: number },
): string[] {
  const { payment } = (answer ?? {}) as { payment?: { transaction?: unknown } }
  const transaction = typeof payment?.transaction === 'string' ? payment.transaction : ''
  const money = [
    row('paid', `${formatUnits(terms.amount, 6)} USDC to ${terms.payTo}, by ${payer}`),
    row('transaction', /^0x[0-9a-f]{64}$/.test(transaction) ? transaction : 'none was named'),
  ]
  if (!report.ok) {
    const [mark, verdict] =
      report.outcome === 'differs'
        ? ['WRONG', 'This attestation is not valid: do not rely on it.']
        : ['NOT SIGNED', 'This attestation has the old form: do not rely on what is not signed.']
    const failed = report.checks.filter(({ ok }) => !ok)
    return [
      ...money,
      ...failed.map(({ field, claimed, found }) => row(mark, `${field}: ${claimed}  (found: ${found})`)),
      verdict,
    ]
  }
  const { tokenId, state, authentic, flagged, blockNumber, blockHash, verifyingContract, signer, timestamp } =
    report.attested
  const whose = pinned ? 'the signer you named' : 'a key that the gateway publishes; name it with --signer to insist'
  return [
    ...money,
    row('asset', `${tokenId}: ${lifecycleStates[state]}, ${flagged ? 'FLAGGED' : 'not flagged'}`),
    row('authentic', authentic ? 'yes, by its state on the chain' : 'NO'),
    row('read at', `block ${blockNumber} ${blockHash}`),
    row('contract', verifyingContract),
    row('signed by', `${checksumAddress(signer)}, ${whose}`),
    row('signed at', new Date(timestamp * 1000).toISOString()),
    ...formatAge(asked / 1000 - timestamp),
    'Both signatures are valid: raw (spec §4.8), and EIP-712, which covers every line on the asset.',
  ]
}

/** Formats the age of an attestation that was signed before its purchase. One of an earlier purchase is so old. */
function formatAge(seconds: number): string[] {
  if (seconds <= clockTolerance) return []
  const age = seconds < 120 ? `${Math.floor(seconds)} seconds` : `${Math.floor(seconds / 60)} minutes`
  return [row('OLD', `signed ${age} before this purchase, by this machine’s clock: later changes are not in it.`)]
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(12)} ${text}`
}

/** Returns the paying account: PAYER_KEY, or for a local gateway the demonstration's payer, whose key is public. */
function payerOf(key: Uint8Array | null, gateway: URL): LocalAccount {
  if (key !== null) {
    try {
      return privateKeyToAccount(bytesToHex(key))
    } catch {
      throw new Error('PAYER_KEY holds no private key of secp256k1.')
    }
  }
  const [demo] = publishedAccounts(moneyAccounts.payer + 1).slice(-1)
  if (demo === undefined || !['127.0.0.1', '[::1]', 'localhost'].includes(gateway.hostname))
    throw new Error('Set PAYER_KEY to the private key that pays: 0x and 64 hex digits, of an account with USDC.')
  return demo
}

/** Parses dollars up to 999999.999999 to millionths, or returns null. */
function parseDollars(text: string): bigint | null {
  const [, whole, part = ''] = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? null : BigInt(whole) * 1_000_000n + BigInt(part.padEnd(6, '0'))
}

/** Parses the URL and adds a slash at the end, so that relative paths resolve below it. */
function parseGateway(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '')
    throw new Error('--gateway is an http or https URL, such as https://gateway.example.com.')
  return new URL(`${url.origin}${url.pathname.replace(/\/*$/, '/')}`)
}

function parsePurchaseId(text: string): string {
  if (!isIdentifier(text)) throw new Error('--id takes 16 to 128 letters, digits, hyphens or underscores.')
  return text
}

function parseOptionalAddress(option: string, text: string | undefined): Hex | undefined {
  if (text === undefined) return undefined
  const address = parseAddress(text)
  if (address === null) throw new Error(`${option} is an address: 0x and 40 hex digits, its checksum right.`)
  return address
}
