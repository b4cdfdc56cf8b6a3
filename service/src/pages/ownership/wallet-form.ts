/** Forms that a wallet of the browser carries out. Each says what the step does and what becomes public before anything is signed. */
import { textsIn, type PageContext } from '../context.ts'
import { html, jsonBlock, type Html } from '../html.ts'
import { chainId, chainTitle } from '../../domain/chain.ts'

export const claimPath = '/claim'
export const transferPath = '/transfer'
/** Path of the pages of offers; the id of the transfer follows. */
export const offersPrefix = '/t/'
/** The network of every step, for people. */
export const networkName = `${chainTitle} (${chainId})`

type WalletStep = {
  /** Names the step to the script. */
  readonly step: 'claim' | 'offer' | 'accept' | 'withdraw' | 'address' | 'call'
  /** Attributes that the step needs. */
  readonly data: Html
  readonly text?: Html | string | undefined
  /** Words of the button, with the place `{wallet}`. */
  readonly button: string
  readonly fields?: Html | undefined
  /** A passkey may take the step in place of a wallet. */
  readonly passkeys: boolean
}

/** Steps that a key of a passkey can take, and whether a visitor may make a new one for them. It can send no transaction. */
const passkeySteps: Readonly<Partial<Record<WalletStep['step'], 'new' | 'known'>>> = {
  claim: 'new',
  accept: 'new',
  address: 'new',
  offer: 'known',
  withdraw: 'known',
}

/** The form says what it needs where no script runs. */
export function walletForm(context: PageContext, { step, data, text, button, fields, passkeys }: WalletStep): Html {
  const { wallet } = textsIn(context)
  const passkey = passkeys ? passkeySteps[step] : undefined
  return html`<form
    class="tool"
    data-step="${step}"
    data-button="${button}"
    ${passkey !== undefined && html` data-passkey="${passkey}"`}
    ${data}
  >
    ${text !== undefined && html`<p>${text}</p>`} ${fields}
    <p class="buttons"></p>
    <div role="status" class="outcome">${wallet.none}</div>
  </form>`
}

/** The sentences that the script says, and the network that a wallet switches to. A wallet adds it by `provider`. A page has them once. */
export function walletData(
  context: PageContext,
  { publicRpcUrl: provider }: { readonly publicRpcUrl: string | null },
): Html {
  const network = { chainId, name: networkName, provider }
  return jsonBlock('wallet-data', 'application/json', JSON.stringify({ texts: textsIn(context).wallet, network }))
}
