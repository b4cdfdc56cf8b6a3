/** A gateway in a process of its own, on a PostgreSQL database; `argv[2]` is its settings as JSON. It prints its port. */
import { killProcess } from '../processes/kill.ts'
import { fileURLToPath } from 'node:url'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Hex } from '@touchstone/verdict'
import { privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../../src/lib/log.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { attestationKey, openTables, openTestGateway, openVerdicts } from './components.ts'

type Settings = {
  databaseUrl: string
  rpcUrl: string
  contract: Hex
  facilitatorKey: Hex
  signerKey: Hex
  /** The key that authorizes claims; without it, the gateway has no payment channels. */
  channelKey?: Hex
  /** It kills itself as soon as a payment is `done`, or a voucher sold, in the database, before the response. */
  diesPaid?: boolean
}

/** Starts one; `kill` ends it in the middle of whatever it does. */
export async function startGatewayProcess(settings: Settings) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the gateway process ended at its start')))
    createInterface({ input: child.stdout }).once('line', (line) => resolve(Number(line)))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    kill: () => killProcess(child),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run(JSON.parse(process.argv[2] ?? '') as Settings)

async function run(settings: Settings): Promise<void> {
  const { databaseUrl, rpcUrl, contract, facilitatorKey, signerKey, channelKey, diesPaid = false } = settings
  const database = await openDatabase({ url: databaseUrl })
  const log = createLog(() => {})
  const { verdicts } = openVerdicts({ rpcUrl, contract, log })
  const { ledger, slots, channels } = await openTables(database)
  const thenDie = <T>(paid: T): T => {
    if (diesPaid) process.kill(process.pid, 'SIGKILL')
    return paid
  }
  const done: typeof ledger.done = (...args) => ledger.done(...args).then(thenDie)
  const store: typeof channels = { ...channels, sell: (sale) => channels.sell(sale).then(thenDie) }
  const [facilitator, signer] = [privateKeyToAccount(facilitatorKey), attestationKey(signerKey)]
  const { port } = await openTestGateway(
    { rpcUrl, contract, verdicts, ledger: { ...ledger, done }, slots, facilitator, signer, log },
    { channels: channelKey && { store, accounts: [attestationKey(channelKey)] } },
  )
  process.stdout.write(`${port}\n`)
}
