/** A gateway in a process of its own, on a PostgreSQL database; `argv[2]` is its settings as JSON. It prints its port. */
import type { RequestListener } from 'node:http'
import { serve } from '../http.ts'
import { killProcess } from '../processes/kill.ts'
import { fileURLToPath } from 'node:url'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Hex } from '@touchstone/verdict'
import { privateKeyToAccount } from 'viem/accounts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { openGateway, type GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import { clientKeys } from '../../../src/http/client-ip.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { createChannelStore } from '../../../src/payments/channels/store.ts'
import { createSlots } from '../../../src/payments/facilitator/slots.ts'
import { openHolder } from '../../../src/payments/holder.ts'
import { createLedger } from '../../../src/payments/ledger.ts'
import { attestationKey, openVerdicts, published } from './components.ts'
import { asset, payTo, price } from './buyer.ts'

type Settings = {
  databaseUrl: string
  rpcUrl: string
  contract: Hex
  facilitatorKey: Hex
  signerKey: Hex
  /** The key that authorizes claims; without it, the gateway has no payment channels. */
  channelKey?: Hex
  /** It kills itself as soon as a payment is `done` in the database, before the response. */
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
  const signer = attestationKey(signerKey)
  let onRequest: RequestListener = () => {}
  const { port } = await serve((request, response) => onRequest(request, response))
  const rows = { chainId: 84532, asset, holder: await openHolder(database) }
  const ledger = createLedger(database, rows)
  const done: typeof ledger.done = async (...args) => {
    const answer = await ledger.done(...args)
    if (diesPaid) process.kill(process.pid, 'SIGKILL')
    return answer
  }
  const options: GatewayOptions = {
    terms: { price, asset, payTo, resource: `http://127.0.0.1:${port}/verify`, tokenName: 'USDC', tokenVersion: '2' },
    contract,
    verdicts,
    ledger: { ...ledger, done },
    slots: createSlots(database, rows),
    channels: channelKey && { store: createChannelStore(database, rows), accounts: [attestationKey(channelKey)] },
    rpc: createRpcClient({ url: rpcUrl }),
    facilitator: { accounts: [privateKeyToAccount(facilitatorKey)], walletFactories: [] },
    keys: { active: () => signer, published: () => [published(signer)] },
    clientKey: clientKeys([]),
    log,
  }
  const gateway = await openGateway(options)
  onRequest = gateway.onRequest
  process.stdout.write(`${port}\n`)
}
