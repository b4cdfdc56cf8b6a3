/**
 * A wallet of the browser carries out steps by signature (EIP-6963, EIP-1193). This script asks the service for what
 * is to be signed, lets the wallet sign it (EIP-712), and sends the signature. «It is on record under your wallet» is
 * said only when the record says so.
 */
import { addressIn, deadline, element, request, verdictAt } from './page.js'
import { isOwner } from './verdict/rules/owner.js'

const { texts, network } = JSON.parse(document.getElementById('wallet-data').textContent)
const wallets = new Map()
const forms = new Set()
/** A passkey belongs to the name of a host, so that none can be made for an IP address. */
const canUsePasskeys = 'PublicKeyCredential' in globalThis && !/^[\d.]+$|^\[/.test(location.hostname)

addEventListener('eip6963:announceProvider', ({ detail }) => {
  const { info, provider } = detail ?? {}
  if (typeof info?.uuid === 'string' && typeof provider?.request === 'function') add(info.uuid, info.name, provider)
})
dispatchEvent(new Event('eip6963:requestProvider'))
// Wallets of before EIP-6963 only set a global; extensions may do so a moment after the page.
if (wallets.size === 0 && globalThis.ethereum !== undefined) add('', texts.unnamed, globalThis.ethereum)

/** Gives a form a button for each wallet. */
export function offerWallets(form) {
  if (forms.has(form)) return
  forms.add(form)
  say(form, wallets.size === 0 ? texts.none : '')
  for (const wallet of wallets.values()) addButton(form, wallet)
  if (form.querySelector('[data-scan-to]') !== null && navigator.mediaDevices?.getUserMedia !== undefined) addScan(form)
  if (form.dataset.passkey !== undefined && canUsePasskeys) addPasskey(form)
}

/** Reads the address of the other side by camera: its page shows it as a QR code. */
function addScan(form) {
  const [button, viewer] = ['[data-scan-to]', '.viewer'].map((name) => form.querySelector(name))
  let scanning
  const stop = () => {
    scanning = undefined
    viewer.hidden = true
  }
  button.hidden = false
  viewer.querySelector('[data-stop]').addEventListener('click', stop)
  button.addEventListener('click', async () => {
    const mine = (scanning = {})
    const isWanted = () => scanning === mine
    viewer.hidden = false
    try {
      const { codeReader, readCamera } = await import('./code-reader.js')
      const code = await readCamera(viewer.querySelector('video'), await codeReader(['qr_code']), isWanted)
      if (code === undefined) return
      const address = addressIn(code.text)
      if (address !== undefined) form.elements.to.value = address
      say(form, address === undefined ? texts.badTo : '', false)
    } catch {
      if (isWanted()) say(form, texts.noCamera, false)
    } finally {
      if (isWanted()) stop()
    }
  })
}

/** A passkey stands for a wallet. What it needs is loaded when a visitor chooses it. */
function addPasskey(form) {
  addButton(form, { name: texts.passkey, ...passkeyOf({ isNew: false }) })
  if (form.dataset.passkey !== 'new') return
  const hint = element('p', texts.passkeyHint)
  hint.className = 'hint'
  form.querySelector('.buttons').before(hint)
  addButton(form, { name: texts.newPasskey, ...passkeyOf({ isNew: true }) })
}

function passkeyOf(options) {
  let loaded
  const load = () => import('./passkey.js').then(({ passkeyProvider }) => passkeyProvider(options))
  return {
    provider: { request: async (request) => (await (loaded ??= load())).request(request) },
    forget: () => loaded?.then((passkey) => passkey.forget()),
  }
}

function add(id, name, provider) {
  if (wallets.has(id)) return
  const wallet = { name: String(name).slice(0, 40), provider }
  wallets.set(id, wallet)
  for (const form of forms) addButton(form, wallet)
}

function addButton(form, { name, ...wallet }) {
  const button = document.createElement('button')
  button.type = 'button'
  const [before = '', after = ''] = form.dataset.button.split('{wallet}')
  const label = document.createElement('span')
  label.append(before, element('bdi', name), after)
  button.append(label)
  button.addEventListener('click', () => void run(form, wallet))
  if (form.querySelector('.buttons').childElementCount === 0) say(form, '')
  form.querySelector('.buttons').append(button)
}

async function run(form, { provider, forget }) {
  const buttons = form.querySelectorAll('.buttons button')
  for (const button of buttons) button.disabled = true
  try {
    const [account] = await provider.request({ method: 'eth_requestAccounts' })
    if (form.dataset.step === 'address') await showAddress(form, account)
    else if (form.dataset.step === 'call') await call(form, provider, account)
    else await sign(form, provider, account)
  } catch (error) {
    // 4001: the visitor declined (EIP-1193).
    const reason = error?.code === 4001 ? 'declined' : error?.reason === 'noPrf' ? 'noPrf' : 'refused'
    say(form, texts[reason], false)
  } finally {
    for (const button of buttons) button.disabled = false
    await forget?.()
  }
}

/** Asks for the typed data, lets the wallet sign it, sends the signature. */
async function sign(form, provider, account) {
  const input = { account, ...inputOf(form) }
  const terms = await post(form, input)
  if (terms.reason !== undefined) return refuse(form, terms)
  if (!(await isOnChain(provider))) return refuseChain(form)
  say(form, texts.sign)
  const { typedData, ...signed } = terms
  const parameters = [account, JSON.stringify(typedData)]
  const signature = await provider.request({ method: 'eth_signTypedData_v4', params: parameters })
  await sending(form, async () => {
    const sent = await post(form, { ...input, ...signed, signature })
    if (sent.reason !== undefined) return refuse(form, sent)
    form.querySelector('.buttons').hidden = true
    await outcomes[form.dataset.step](form, { ...signed, ...sent }, account)
  })
}

/** Runs what begins with the sending of a step. An error does not show whether the step was carried out. */
async function sending(form, steps) {
  say(form, texts.sending)
  try {
    await steps()
  } catch {
    say(form, texts.unsure)
  }
}

const outcomes = {
  claim: showClaim,
  accept: showOwner,
  offer(form, { status, transferId }) {
    if (status === 'sent') return sayWithLink(form, texts.sent, transferId)
    location.assign(`${offerLink(form, transferId)}#show`)
  },
  withdraw: (form, { status }) => say(form, status === 'sent' ? texts.sent : texts.ended, true),
}

/**
 * Lets the wallet of the owner send a transaction itself, on the network of the record. Then the page opens anew, so that it shows what the
 * record says.
 */
async function call(form, provider, account) {
  const { contract, call: data } = form.dataset
  if (!isOwner(await verdictAt(form.dataset.record), account)) return say(form, texts.notOwner, false)
  if (!(await isOnChain(provider))) return refuseChain(form)
  say(form, texts.confirm)
  const hash = await hashOf(provider, { from: account, to: contract, data, value: '0x0', chainId })
  if (hash === undefined) return showCall(form)
  await sending(form, async () => {
    const receipt = await until(() => provider.request({ method: 'eth_getTransactionReceipt', params: [hash] }))
    if (receipt !== undefined && Number(receipt.status) !== 1) return say(form, texts.reverted, false)
    const isShown = async () =>
      (await verdictAt(form.dataset.record)).chainRef.block_number >= Number(receipt.blockNumber)
    if (receipt === undefined || !(await until(isShown))) return say(form, texts.sent)
    location.reload()
  })
}

/**
 * The errors by which a wallet says that it sent nothing (EIP-1193, EIP-1474). Any other one may follow after the sending: a node answers
 * -32003 for a transaction that it has already.
 */
const sentNothing = new Set([4001, 4100, 4200, -32_601, -32_602, -32_004])

/** Lets the wallet send a transaction. Returns its hash, or undefined where the wallet does not say whether it sent it. */
async function hashOf(provider, transaction) {
  try {
    const hash = await provider.request({ method: 'eth_sendTransaction', params: [transaction] })
    return typeof hash === 'string' ? hash : undefined
  } catch (error) {
    if (sentNothing.has(error?.code)) throw error
    return undefined
  }
}

/** Opens the page anew once the record has what the call does: the page then offers other calls. */
async function showCall(form) {
  say(form, texts.unsaid)
  const isOnRecord = async () => {
    const page = await (await request(location.pathname, 'text/html')).text()
    return page.includes('data-call=') && !page.includes(form.dataset.call)
  }
  if (await until(isOnRecord, 5_000)) location.reload()
  else say(form, texts.unseen)
}

const chainId = `0x${network.chainId.toString(16)}`

/** Switches the wallet to the network of the record; one that does not know it is asked to add it. A passkey is on no network. */
async function isOnChain(provider) {
  const isThere = () => provider.request({ method: 'eth_chainId' }).then((id) => Number(id) === network.chainId)
  if (await isThere().catch(() => true)) return true
  try {
    await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
  } catch (error) {
    // 4902: the wallet does not have the network (EIP-3326).
    if (error?.code !== 4902 || network.provider === null) return false
    const added = { chainId, chainName: network.name, rpcUrls: [network.provider], nativeCurrency: ether }
    await provider.request({ method: 'wallet_addEthereumChain', params: [added] })
  }
  return isThere()
}

const ether = { name: 'Ether', symbol: 'ETH', decimals: 18 }

/** Asks again for a minute and a half, also after an error; undefined when there is no answer until then. */
async function until(ask, pause = 1_000) {
  const end = Date.now() + 90_000
  const isLate = new Promise((resolve) => setTimeout(resolve, 90_000))
  while (Date.now() < end) {
    try {
      const answer = await Promise.race([ask(), isLate])
      if (answer) return answer
    } catch {
      // The next attempt may succeed.
    }
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
  return undefined
}

/** Compares the account with the record inside the browser. */
async function showOwner(form, { status }, account) {
  if (status === 'sent') return say(form, texts.sent, true)
  const isMine = isOwner(await verdictAt(form.dataset.record), account)
  say(form, isMine ? texts.mine : texts.unsure, isMine || undefined)
  return isMine
}

/**
 * Opens the page anew once the record has the owner, because the old one says that there is none. The new page tests the account. A browser
 * that keeps nothing opens it without that test.
 */
async function showClaim(form, outcome, account) {
  if ((await showOwner(form, outcome, account)) !== true) return
  location.reload()
  sessionStorage.setItem(form.dataset.record, account)
}

function inputOf({ dataset, elements }) {
  const { step, ticket, transfer: transferId } = dataset
  return { step, ticket, transferId, to: elements.to && addressIn(elements.to.value) }
}

function refuseChain(form) {
  say(form, texts.chain.replace('{chain}', network.name), false)
}

function refuse(form, { reason, transferId }) {
  const text = texts[reason] ?? texts.refused
  if (transferId === undefined) say(form, text, false)
  else sayWithLink(form, text, transferId, false)
}

function offerLink({ dataset }, transferId) {
  return `${dataset.offers}${encodeURIComponent(transferId)}?lang=${document.documentElement.lang}`
}

function sayWithLink(form, text, transferId, isGood) {
  say(form, `${text} `, isGood)
  const link = element('a', texts.open)
  link.href = offerLink(form, transferId)
  form.querySelector('.outcome').append(link)
}

/** Shows the address as a QR code and as text, for the owner; nothing is sent from here. */
async function showAddress(form, account) {
  const { default: encodeQr } = await import('./qr/index.js')
  const place = form.querySelector('.outcome')
  const code = element('code', account)
  code.dir = 'ltr'
  code.id = 'own-address'
  const copy = element('button', texts.copyAddress)
  copy.type = 'button'
  copy.dataset.copy = 'own-address'
  place.className = 'outcome'
  place.replaceChildren(pictureOf(encodeQr(account, 'raw', { border: 4 }), account), code, copy)
}

/** Draws a QR code, black on white in every theme. */
function pictureOf(modules, title) {
  const size = modules.length
  const dark = modules.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ''))).join('')
  const made = (name, attributes) => {
    const part = document.createElementNS('http://www.w3.org/2000/svg', name)
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value)
    return part
  }
  const look = { viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': title, 'shape-rendering': 'crispEdges' }
  const drawing = made('svg', look)
  drawing.append(made('path', { fill: '#fff', d: `M0 0h${size}v${size}H0z` }), made('path', { fill: '#000', d: dark }))
  const place = document.createElement('div')
  place.className = 'qr'
  place.append(drawing)
  return place
}

async function post(form, fields) {
  const response = await fetch(form.dataset.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(fields),
    signal: deadline(60_000),
  })
  const answer = await response.json()
  if (!response.ok && answer.reason === undefined) throw new Error(`HTTP ${response.status}`)
  return answer
}

function say(form, text, isGood) {
  const place = form.querySelector('.outcome')
  place.className = `outcome ${isGood === undefined ? '' : isGood ? 'yes' : 'no'}`
  place.replaceChildren(...(text === '' ? [] : [element('p', text)]))
}
