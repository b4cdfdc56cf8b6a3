/** A facilitator behind a URL, with faults. It is the library's own over a plain viem-like signer, and what goes wrong on the way. */
import type { ServerResponse } from 'node:http'
import { keccak256, type Hex } from 'viem'
import { serve } from '../http.ts'
import { createLocalFacilitator } from '../../../src/payments/facilitator/local.ts'
import { createPaymentChain } from '../../../src/payments/on-chain.ts'
import type { Payment } from '../../../src/payments/x402/payment.ts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { GatewayWorld } from './gateway.ts'

type Path = 'verify' | 'settle' | 'supported'
/** lost: the work is done, but its answer is never sent. lie: `success` without any work. */
export type FacilitatorFault =
  | 'none'
  | 'status500'
  | 'garbage'
  | 'hang'
  | 'gone'
  | 'lost'
  | 'lie'
  /** It is a lie of more than 64 kB. */
  | 'flood'
  | 'blames'
  | 'redirect'

/** `demanded`: the value of Authorization without which it answers 401. */
export async function startFacilitator(world: GatewayWorld, demanded?: () => string) {
  const rpc = createRpcClient({ url: world.chainUrl })
  const chain = createPaymentChain({ rpc, asset: world.terms.asset })
  const { slots, terms } = world
  /** The payments and transactions of another operator are in a database of its own. */
  const assign: typeof slots.assign = async (given, signIt) => {
    const hashes: Hex[] = []
    const slot = await slots.assign({ ...given, members: [] }, async (nonce) => {
      const { raw, hash } = await signIt(nonce)
      hashes.push(hash)
      return { raw, hash: keccak256(hash) }
    })
    return { ...slot, hashes }
  }
  const log = createLog(() => {})
  const local = createLocalFacilitator({
    rpc,
    chain,
    accounts: [world.facilitator],
    slots: { ...slots, assign },
    terms,
    walletFactories: [],
    log,
  })
  let fault: { path?: Path; name: FacilitatorFault } = { name: 'none' }

  const answers: Readonly<Record<Path, (payment: Payment) => Promise<object>>> = {
    supported: async () => ({ kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' }], extensions: [] }),
    async verify(payment) {
      const verified = await local.verify(payment)
      return verified.ok
        ? { isValid: true, payer: payment.from }
        : { isValid: false, invalidReason: 'insufficient_funds' }
    },
    async settle(payment) {
      const { sent, paid } = await local.settle(payment, null)
      return { success: sent === 'mined', transaction: paid?.transaction ?? '', network: 'eip155:84532' }
    },
  }

  const { url, close } = await serve((request, response) => {
    void request.toArray().then(async (chunks: Buffer[]) => {
      if (demanded !== undefined && request.headers.authorization !== demanded())
        return void response.writeHead(401).end('{"error":"unauthorized"}')
      const path = (request.url ?? '').slice(1) as Path
      const sent = Buffer.concat(chunks).toString()
      const payment = sent === '' ? undefined : paymentIn(sent)
      const name = fault.path === undefined || fault.path === path ? fault.name : 'none'
      const work = async () => JSON.stringify(await answers[path](payment as Payment))
      await tell[name](response, work)
    })
  })
  return {
    url,
    set: (name: FacilitatorFault, path?: Path) => (fault = { name, ...(path && { path }) }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const tell: Readonly<Record<FacilitatorFault, (response: ServerResponse, work: () => Promise<string>) => unknown>> = {
  none: async (response, work) => response.end(await work()),
  status500: (response) => response.writeHead(500).end('{"error":"internal"}'),
  garbage: (response) => response.end('<html>bad gateway</html>'),
  hang: () => {},
  gone: (response) => response.destroy(),
  lost: async (response, work) => (await work(), response.destroy()),
  lie: (response) => response.end('{"success":true,"isValid":true,"transaction":"0x12","network":"eip155:84532"}'),
  flood: (response) => response.end(JSON.stringify({ isValid: true, success: true, more: ' '.repeat(65_536) })),
  blames: (response) => response.end('{"isValid":false,"invalidReason":"something_new","success":false}'),
  redirect: (response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
}

function paymentIn(body: string): Payment {
  const { paymentPayload } = JSON.parse(body) as {
    paymentPayload: { payload: { signature: `0x${string}`; authorization: Record<string, string> } }
  }
  const { signature, authorization } = paymentPayload.payload
  const { from, to, value, validAfter, validBefore, nonce } = authorization as Record<string, `0x${string}`>
  return {
    from: from as `0x${string}`,
    to: to as `0x${string}`,
    nonce: nonce as `0x${string}`,
    value: BigInt(value ?? 0),
    validAfter: BigInt(validAfter ?? 0),
    validBefore: BigInt(validBefore ?? 0),
    signature,
  }
}
