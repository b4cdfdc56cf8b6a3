/**
 * Claims the item of a page with a wallet of the browser (EIP-6963, EIP-1193): asks this service for what is to be signed, lets the wallet
 * sign it (EIP-712), and sends the signature. «It is on record under your wallet» is said only when the record says so.
 */
import { isOwner } from './verdict/rules/owner-commitment.js'

const form = document.querySelector('[data-claim]')
const texts = JSON.parse(form.querySelector('script').textContent)
const buttons = form.querySelector('.buttons')
const place = form.querySelector('.outcome')
const wallets = new Map()

addEventListener('eip6963:announceProvider', ({ detail }) => {
  const { info, provider } = detail ?? {}
  if (typeof info?.uuid === 'string' && typeof provider?.request === 'function') add(info.uuid, info.name, provider)
})
dispatchEvent(new Event('eip6963:requestProvider'))
// Wallets of before EIP-6963 only set a global; extensions may do so a moment after the page.
if (wallets.size === 0 && globalThis.ethereum !== undefined) add('', 'Wallet', globalThis.ethereum)
if (wallets.size === 0) say(texts.none)

function add(id, name, provider) {
  if (wallets.has(id)) return
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = texts.button.replace('{wallet}', String(name).slice(0, 40))
  button.addEventListener('click', () => void claimWith(provider))
  wallets.set(id, button)
  buttons.append(button)
  say('')
}

async function claimWith(provider) {
  for (const button of wallets.values()) button.disabled = true
  try {
    const [claimant] = await provider.request({ method: 'eth_requestAccounts' })
    const terms = await post({ claimant })
    if (terms.reason !== undefined) return say(texts[terms.reason] ?? texts.refused, false)
    say(texts.sign)
    const { typedData, deadline } = terms
    const parameters = [claimant, JSON.stringify(typedData)]
    const signature = await provider.request({ method: 'eth_signTypedData_v4', params: parameters })
    say(texts.sending)
    const sent = await post({ claimant, deadline, signature })
    if (sent.reason !== undefined) return say(texts[sent.reason] ?? texts.refused, false)
    if (sent.status === 'sent') return say(texts.sent, true)
    const isMine = isOwner(await record(), claimant)
    say(isMine ? texts.mined : texts.unsure, isMine || undefined)
    buttons.hidden = true
  } catch (error) {
    // 4001: the visitor declined (EIP-1193).
    say(error?.code === 4001 ? texts.declined : texts.refused, false)
  } finally {
    for (const button of wallets.values()) button.disabled = false
  }
}

async function post(fields) {
  const response = await fetch(form.dataset.claim, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ticket: form.dataset.ticket, ...fields }),
    signal: AbortSignal.timeout(60_000),
  })
  return response.json()
}

async function record() {
  const response = await fetch(form.dataset.record, { cache: 'no-store', signal: AbortSignal.timeout(10_000) })
  return response.json()
}

function say(text, isGood) {
  place.className = `outcome ${isGood === undefined ? '' : isGood ? 'yes' : 'no'}`
  place.textContent = text
}
