/**
 * Checks a certificate in the browser: the signature by the issuer's did:web document (RFC 7515, ES256 or EdDSA), the status list (W3C Bitstring
 * Status List), and the record now. The certificate is never sent. Keys and this page are kept, so that a signature is checked offline.
 */
import { element, request, urlOf, verdictAt } from './page.js'

const place = document.querySelector('[data-checked]')
const provider = document.querySelector('[data-provider]')
const texts = JSON.parse(document.getElementById('check-texts').textContent)
const { did } = place.dataset
const folder = new URL('./', import.meta.url).pathname
const keysPath = '/.well-known/did.json'
const maxLength = 20_000
/** Milliseconds by which the clock of a visitor or of another instance may be slow where a certificate begins. */
const skew = 120_000

function checkAddress() {
  const token = location.hash.slice(1)
  if (token !== '') void check(token)
}

/** The certificate cannot be accepted; `reason` names a text. */
class Refused extends Error {
  constructor(reason, values = {}) {
    super(reason)
    this.values = values
  }
}

let run = 0

export async function check(text) {
  const current = ++run
  const isCurrent = () => current === run
  show('none', texts.checking, '')
  if (provider !== null) provider.hidden = true
  try {
    const certificate = certificateOf(tokenOf(text))
    if (globalThis.crypto?.subtle === undefined) throw new Error('no WebCrypto, as over plain http')
    const keys = await issuerKeys()
    if (keys === null) return isCurrent() && show('none', texts.noKeysTitle, texts.noKeysText, [], certificate)
    const key = await verified(certificate, keys.document)
    const signature = keys.keptAt === null ? texts.signatureOk : texts.signatureKept
    const rows = [[true, texts.signature, fill(signature, { key, date: dateOf(keys.keptAt) })]]
    const times = checkTimes(certificate.payload, keys.now)
    if (times !== null) throw new Refused(times)
    const status = await outcomeOf(() => statusRow(certificate.payload, keys))
    const record = await outcomeOf(() => recordRow(certificate.payload))
    rows.push(status ?? [null, texts.status, texts.unreachable], record ?? [null, texts.record, texts.unreachable])
    rows.push([null, texts.block, fill(texts.blockOpen, { block: certificate.status.chainRef.blockNumber })])
    if (!isCurrent()) return
    const isWhole = keys.keptAt === null && rows.slice(0, 3).every(([isGood]) => isGood === true)
    if (isWhole) show('own', texts.validTitle, texts.validText, rows, certificate)
    else show('hold', texts.partTitle, texts.partText, rows, certificate)
    offerProvider(certificate, rows, isWhole, isCurrent)
    void keep()
  } catch (error) {
    if (!isCurrent()) return
    if (error instanceof Refused) show('stop', texts.refusedTitle, fill(texts[error.message], error.values))
    else show('none', texts.noKeysTitle, texts.cannot)
  }
}

/** Takes the certificate out of a pasted link. */
function tokenOf(text) {
  const trimmed = text.trim()
  return trimmed.includes('#') ? trimmed.slice(trimmed.indexOf('#') + 1) : trimmed
}

function certificateOf(token) {
  try {
    return parse(token)
  } catch (error) {
    throw error instanceof Refused ? error : new Refused('malformed')
  }
}

/** Parses the JWS in its one spelling: base64url without spare bits. ES256 has a second valid signature, for the same claims. */
function parse(token) {
  const parts = token.split('.')
  if (token.length > maxLength || parts.length !== 3) throw new Refused('malformed')
  const [head, body, signature] = parts
  const header = jsonOf(bytesOf(head))
  const payload = jsonOf(bytesOf(body))
  const [issuer, status] = [payload.issuer?.id ?? payload.issuer, payload.credentialSubject?.assetStatus]
  if (issuer !== did) throw new Refused('foreign', { issuer: shownDid(issuer) })
  const isForm = header.typ === 'vc+jwt' && header.crit === undefined && typeof header.kid === 'string'
  if (!isForm || !isStatus(status)) throw new Refused('malformed')
  return { header, payload, status, signed: new TextEncoder().encode(`${head}.${body}`), signature: bytesOf(signature) }
}

/** Only a DID is shown: the certificate of a stranger is no place for a message. */
function shownDid(issuer) {
  return /^did:[a-z0-9]+:[\w.:%-]{1,100}$/.test(issuer) ? issuer : '–'
}

function isStatus(status) {
  const { blockNumber, blockHash, contract, tokenId } = status?.chainRef ?? {}
  return (
    typeof status?.state === 'string' &&
    Object.hasOwn(texts.states, status.state) &&
    Number.isSafeInteger(blockNumber) &&
    /^0x[0-9a-f]{64}$/.test(blockHash) &&
    /^0x[0-9a-fA-F]{40}$/.test(contract) &&
    /^\d{1,78}$/.test(tokenId)
  )
}

/**
 * Returns the did:web document of this host, or the copy that was kept; null where there is none. `now` is the later of the browser's clock and
 * the time of that answer, so that nothing that has ended counts by a slow clock.
 */
async function issuerKeys() {
  try {
    const response = await request(keysPath)
    const document = await response.clone().json()
    if (document.id !== did) throw new Refused('key')
    void keepKeys(response)
    const hostTime = Date.parse(response.headers.get('date')) || 0
    return { document, keptAt: null, now: Math.max(Date.now(), hostTime) }
  } catch (error) {
    if (error instanceof Refused) throw error
    const kept = await globalThis.caches?.match(keysPath, { ignoreVary: true }).catch(() => undefined)
    if (kept === undefined) return null
    const document = await kept.clone().json()
    const keptAt = new Date(kept.headers.get('date') ?? Number.NaN)
    return document.id === did ? { document, keptAt, now: Math.max(Date.now(), keptAt.getTime() || 0) } : null
  }
}

async function keepKeys(response) {
  try {
    const cache = await caches.open(folder)
    await cache.put(keysPath, response)
  } catch {
    // A browser that keeps nothing checks with a connection only.
  }
}

/** Verifies a JWS by the key that its header names, and returns the key's name. A revoked key is no assertion method any more. */
async function verified({ header, signed, signature }, document) {
  const method = (document.verificationMethod ?? []).find(
    ({ id, controller }) => id === header.kid && controller === did,
  )
  if (method === undefined || !document.assertionMethod.includes(header.kid)) throw new Refused('key')
  const [importAs, verifyAs] = algorithms.get(header.alg) ?? []
  if (importAs === undefined || signature.length !== 64) throw new Refused('malformed')
  const key = await importKey(method, importAs).catch((error) => {
    throw error.name === 'NotSupportedError' ? error : new Refused('key')
  })
  if (!(await crypto.subtle.verify(verifyAs, key, signature, signed))) throw new Refused('changed')
  return header.kid.slice(did.length + 1)
}

const algorithms = new Map([
  [
    'ES256',
    [
      { name: 'ECDSA', namedCurve: 'P-256' },
      { name: 'ECDSA', hash: 'SHA-256' },
    ],
  ],
  ['EdDSA', [{ name: 'Ed25519' }, { name: 'Ed25519' }]],
])

async function importKey({ publicKeyJwk, publicKeyMultibase }, algorithm) {
  if (publicKeyJwk !== undefined) {
    const { kty, crv, x, y } = publicKeyJwk
    return crypto.subtle.importKey('jwk', { kty, crv, x, ...(y && { y }) }, algorithm, false, ['verify'])
  }
  const bytes = base58(publicKeyMultibase)
  if (algorithm.name !== 'Ed25519' || bytes.length !== 34 || bytes[0] !== 0xed || bytes[1] !== 1)
    throw new Error('no Ed25519 key')
  return crypto.subtle.importKey('raw', bytes.slice(2), algorithm, false, ['verify'])
}

/** Decodes base58btc with its multibase prefix `z`. */
function base58(text) {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  let number = 0n
  for (const letter of text.slice(1)) number = number * 58n + BigInt(alphabet.indexOf(letter))
  const hex = number.toString(16)
  return Uint8Array.from((hex.length % 2 === 0 ? hex : `0${hex}`).match(/../g), (pair) => Number.parseInt(pair, 16))
}

/** Returns why the times of a credential do not hold, else null. A certificate has no end; passports and lists do. */
function checkTimes({ validFrom, validUntil }, now) {
  if (validFrom !== undefined && !(Date.parse(validFrom) <= now + skew)) return 'future'
  if (validUntil !== undefined && !(Date.parse(validUntil) > now)) return 'ended'
  return null
}

/** Reads each entry of the certificate in its list. A set bit refuses the certificate; a list that cannot be read does not. */
async function statusRow({ credentialStatus }, keys) {
  const entries = [credentialStatus ?? []].flat()
  if (entries.length === 0) throw new Refused('malformed')
  let isRead = true
  for (const entry of entries) {
    const url = urlOf(entry.statusListCredential)
    if (
      entry.type !== 'BitstringStatusListEntry' ||
      !/^\/api\/status\/(?:suspension|revocation)\/\d{1,6}$/.test(url?.pathname)
    )
      throw new Refused('malformed')
    const bits = await listBits(url.pathname, entry, keys).catch(() => null)
    if (bits === null) {
      isRead = false
      continue
    }
    const index = Number(entry.statusListIndex)
    if (!Number.isSafeInteger(index) || index < 0 || index >= bits.length * 8) throw new Refused('malformed')
    if ((bits[index >> 3] & (0x80 >> (index & 7))) !== 0) throw new Refused('suspended')
  }
  return isRead ? [true, texts.status, texts.statusOk] : null
}

/** Reads the bits of the list of an entry, which the issuer signs as a JWS. Throws where it is not that list, or cannot be read. */
async function listBits(path, entry, { document, now }) {
  const token = await (await request(path, 'application/vc+jwt')).text()
  const [head, body, signature] = token.trim().split('.')
  const payload = jsonOf(bytesOf(body))
  const list = { header: jsonOf(bytesOf(head)), signed: new TextEncoder().encode(`${head}.${body}`) }
  await verified({ ...list, signature: bytesOf(signature) }, document)
  const { credentialSubject: subject } = payload
  const isList =
    (payload.issuer?.id ?? payload.issuer) === did &&
    payload.id === entry.statusListCredential &&
    subject.statusPurpose === entry.statusPurpose &&
    list.header.typ === 'vc+jwt' &&
    payload.validUntil !== undefined &&
    subject.encodedList.startsWith('u') // multibase base64url
  if (!isList || checkTimes(payload, now) !== null) throw new Error('not the list of the certificate')
  return unpacked(bytesOf(subject.encodedList.slice(1)))
}

/** Unpacks a list, at most 1 MB. */
async function unpacked(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader()
  const chunks = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
    if (size > 1_048_576) throw new Error('the list is too large')
    chunks.push(value)
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}

/**
 * Compares with the record now, which this service reads at a newer block of the same chain and contract. A report or the end of the record
 * since then refuses the certificate, whatever its status list says.
 */
async function recordRow({ credentialSubject }) {
  const { state, flagged, chainRef } = credentialSubject.assetStatus
  const verdict = await verdictAt(`/api/asset/${chainRef.tokenId}`)
  const now = verdict.chainRef
  const isSame = now.chain_id === chainRef.chainId && now.contract.toLowerCase() === chainRef.contract.toLowerCase()
  if (!isSame) throw new Refused('otherChain')
  const block = now.block_number
  if (!Number.isSafeInteger(block) || typeof verdict.flagged !== 'boolean') throw new Error('no record')
  if (block < chainRef.blockNumber) return [null, texts.record, fill(texts.recordBehind, { block })]
  const isClosed = verdict.state === 'RECYCLED' && state !== 'RECYCLED'
  if ((verdict.flagged && !flagged) || isClosed) throw new Refused('suspended')
  if (verdict.state === state && verdict.flagged === flagged)
    return [true, texts.record, fill(texts.recordSame, { block })]
  return [true, texts.record, fill(texts.recordChanged, { block, state: texts.states[verdict.state] ?? '' })]
}

/** Offers to read the block, and the record at it, at the provider of the operator. An answer about an earlier certificate is dropped. */
function offerProvider(certificate, rows, isWhole, isCurrent) {
  if (provider === null) return
  const button = provider.querySelector('button')
  provider.hidden = false
  button.onclick = async () => {
    provider.hidden = true
    const { blockNumber } = certificate.status.chainRef
    try {
      const row = await outcomeOf(() => blockRow(certificate.status, provider.dataset.provider))
      if (!isCurrent()) return
      rows.splice(-1, 1, row ?? [null, texts.block, fill(texts.blockUnread, { block: blockNumber })])
      const all = isWhole && row !== null
      show(
        isWhole ? 'own' : 'hold',
        isWhole ? texts.validTitle : texts.partTitle,
        all ? texts.validText : texts.partText,
        rows,
        certificate,
      )
      provider.hidden = row !== null // what could not be read can be tried again
    } catch (error) {
      if (isCurrent()) show('stop', texts.refusedTitle, fill(texts[error.message] ?? texts.malformed, {}))
    }
  }
}

async function blockRow({ state, flagged, chainRef }, url) {
  const [{ blockParameter, createRpc, getAssetCall }, { recordOfGetAsset }, { lifecycleStates, isFlagged }] =
    await Promise.all([
      import('./verdict/rpc.js'),
      import('./verdict/rules/record.js'),
      import('./verdict/rules/lifecycle.js'),
    ])
  const rpc = createRpc({ url })
  const { blockNumber, blockHash, contract, tokenId } = chainRef
  const block = await rpc('eth_getBlockByNumber', [`0x${blockNumber.toString(16)}`, false])
  if (typeof block?.hash !== 'string') throw new Error('no block')
  if (block.hash !== blockHash) throw new Refused('otherBlock')
  const call = { to: contract, data: getAssetCall(BigInt(tokenId)) }
  const at = await blockParameter(rpc, { number: BigInt(blockNumber), hash: blockHash })
  const record = recordOfGetAsset(await rpc('eth_call', [call, at]))
  if (record === null) throw new Error('no record')
  if (lifecycleStates[record.state] !== state || isFlagged(record) !== flagged) throw new Refused('otherState')
  return [true, texts.block, fill(texts.blockOk, { block: blockNumber })]
}

/** Returns null for what could not be read; a refusal of the certificate is thrown on. */
async function outcomeOf(read) {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Refused) throw error
    return null
  }
}

/** Keeps this page and its files for a visit without a connection. */
async function keep() {
  try {
    const cache = await caches.open(folder)
    await cache.add('/check')
    await navigator.serviceWorker?.register(new URL('./offline.js', import.meta.url), { scope: '/' })
  } catch {
    // A browser that keeps nothing checks with a connection only.
  }
}

function bytesOf(text) {
  if (typeof text !== 'string' || !/^[\w-]+$/.test(text)) throw new Refused('malformed')
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))
  let again = ''
  for (const byte of bytes) again += String.fromCharCode(byte)
  if (btoa(again).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '') !== text) throw new Refused('malformed')
  return bytes
}

function jsonOf(bytes) {
  const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  if (typeof value !== 'object' || value === null) throw new Refused('malformed')
  return value
}

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_place, name) => String(values[name] ?? ''))
}

function dateOf(moment) {
  const { lang } = document.documentElement
  const isTime = moment !== null && !Number.isNaN(new Date(moment).getTime())
  return isTime
    ? new Intl.DateTimeFormat(lang, { dateStyle: 'long', timeStyle: 'short' }).format(new Date(moment))
    : '–'
}

/** `rows` are a result, what was looked at and what was found; a result is null where nothing was decided. */
function show(tone, title, text, rows = [], certificate) {
  place.hidden = false
  place.className = `card checked tone-${tone}`
  const list = element('ul', '')
  list.className = 'checks'
  for (const [isGood, name, found] of rows) {
    const item = element('li', '')
    item.className = isGood === true ? 'yes' : 'open'
    item.append(element('b', name), element('span', found))
    list.append(item)
  }
  place.replaceChildren(element('h2', title), element('p', text), ...(rows.length > 0 ? [list] : []))
  if (certificate !== undefined && rows.length > 0) place.append(factsOf(certificate))
}

function factsOf({ payload, status }) {
  const facts = element('dl', '')
  facts.className = 'facts2'
  const { pathname = '' } = urlOf(payload.credentialSubject.id) ?? {}
  const isOwn = /^\/(?:01|token)\//.test(pathname)
  const item = element(isOwn ? 'a' : 'span', pathname)
  if (isOwn) item.href = pathname
  item.dir = 'ltr'
  for (const [name, value] of [
    [texts.item, item],
    [texts.stateThen, texts.states[status.state]],
    [texts.at, dateOf(payload.validFrom)],
    [texts.tap, String(status.tapCounter)],
  ]) {
    const row = element('div', '')
    const cell = element('dd', '')
    cell.append(value)
    row.append(element('dt', name), cell)
    facts.append(row)
  }
  return facts
}

addEventListener('hashchange', checkAddress)
checkAddress()
