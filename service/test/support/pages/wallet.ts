/** A wallet of the test in a page, announced as extensions do (EIP-6963), whose requests the test answers. */
import assert from 'node:assert/strict'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import type { Page } from 'playwright-core'

/** Its name is hostile. */
export const walletName = 'Test <b>Wallet</b>'

/** A script that announces the wallet to the page. */
export const announceWallet = `addEventListener('eip6963:requestProvider', () => {
  const request = async ({ method, params = [] }) => {
    const { result, error } = await walletRequest(method, params)
    if (error !== undefined) throw Object.assign(new Error('declined'), error)
    return result
  }
  const detail = { info: { uuid: '1', name: '${walletName}' }, provider: { request } }
  dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }))
})`

type TypedData = Parameters<PrivateKeyAccount['signTypedData']>[0]

export type TestWallet = Awaited<ReturnType<typeof addWallet>>

type Rpc = (method: string, params: readonly unknown[]) => Promise<unknown>
type Network = Readonly<{ chainId: string; rpcUrls?: readonly string[] }>
type Transaction = Readonly<{ to: Hex; data: Hex; chainId: Hex }>

/** Adds the wallet to all pages that `page` opens from now on. `rpc` is the provider of the wallet. */
export async function addWallet(page: Page, account = privateKeyToAccount(generatePrivateKey()), rpc?: Rpc) {
  const wallet = {
    account,
    /** The key that signs; another one than the account's shows what the service checks. */
    signer: account,
    declines: false,
    /** The error by which a transaction ends, and whether the wallet sends it before. */
    failure: null as { readonly code: number; readonly isSent: boolean } | null,
    /** The network that the wallet is on: Ethereum, as in a new wallet. */
    chainId: '0x1',
    /** Networks that the wallet has. */
    networks: ['0x1', '0x14a34'],
    /** Methods that the page asked for, and the data that it had signed. */
    asked: [] as string[],
    signed: [] as { primaryType: string; message: Record<string, unknown> }[],
  }
  const answers: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_requestAccounts: () => [wallet.account.address],
    eth_chainId: () => wallet.chainId,
    eth_getTransactionReceipt: (params) => rpc?.('eth_getTransactionReceipt', params),
    wallet_switchEthereumChain: ([network]) => void (wallet.chainId = (network as Network).chainId),
    wallet_addEthereumChain([network]) {
      const { chainId, rpcUrls } = network as Network
      assert.deepEqual(rpcUrls, ['https://rpc.example/'])
      wallet.networks.push((wallet.chainId = chainId))
    },
    eth_signTypedData_v4: ([, text]) => {
      const typedData = JSON.parse(String(text)) as TypedData & (typeof wallet.signed)[number]
      assert.equal(Number(wallet.chainId), typedData.domain?.chainId, 'The domain is of another network (EIP-712).')
      wallet.signed.push(typedData)
      return wallet.signer.signTypedData(typedData)
    },
    async eth_sendTransaction([asked]) {
      if (wallet.failure?.isSent === false) return
      const { to, data, chainId } = asked as Transaction
      const nonce = Number(await rpc?.('eth_getTransactionCount', [wallet.account.address, 'latest']))
      const fees = { gas: 500_000n, maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 1n }
      const raw = await wallet.signer.signTransaction({ to, data, nonce, chainId: Number(chainId), ...fees })
      return rpc?.('eth_sendRawTransaction', [raw])
    },
  }
  await page.exposeFunction('walletRequest', async (method: string, params: readonly unknown[]) => {
    wallet.asked.push(method)
    const isReading = method === 'eth_requestAccounts' || method === 'eth_chainId'
    if (wallet.declines && !isReading) return { error: { code: 4001 } }
    const isUnknown =
      method === 'wallet_switchEthereumChain' && !wallet.networks.includes((params[0] as Network).chainId)
    if (isUnknown) return { error: { code: 4902 } }
    const result = await answers[method]?.(params)
    const { failure } = wallet
    return method === 'eth_sendTransaction' && failure !== null ? { error: { code: failure.code } } : { result }
  })
  await page.addInitScript(announceWallet)
  return wallet
}

/** Adds a virtual authenticator to the browser of a page: it holds passkeys, and the visitor agrees to everything. */
export async function addAuthenticator(page: Page, { hasPrf = true } = {}): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      ctap2Version: 'ctap2_1',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      hasPrf,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}
