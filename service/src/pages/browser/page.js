/**
 * The script of a page takes the tap out of the address bar. It repeats the tap for a reload or another language. It
 * copies, shares, prints, downloads, and checks the record with the client library. Every page is complete without it.
 */
const texts = JSON.parse(document.getElementById('texts')?.textContent ?? '{}')
const day = { year: 'numeric', month: 'long', day: 'numeric' }
const clock = { hour: '2-digit', minute: '2-digit' }
const timeForms = { day, clock, time: { ...day, ...clock, timeZoneName: 'short' } }
const { tap: tapState, window: tapWindow } = document.body.dataset
/** The latest run of each form. */
const latestRuns = new WeakMap()

if (document.body.dataset.offline !== undefined) showLastAnswer()
else if (!repeatTap()) {
  keepTap()
  keepAnswer()
}
// A link to a part of the page makes an entry of the session history, which is the same visit.
const visit = history.state
addEventListener('hashchange', () => history.state ?? history.replaceState(visit, ''))
// A browser that goes back may show the page as it was left (bfcache). The item may have been reported since.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted && /^\/(?:01|token|tap|t|check)(?:\/|$)/.test(location.pathname)) location.reload()
})
const usable = {
  copy: 'clipboard' in navigator,
  share: 'share' in navigator,
  print: true,
  download: true,
  recheck: true,
  owner: true,
}
for (const element of document.querySelectorAll('[data-scripted]')) element.hidden = false
localTimes()
for (const [name, isUsable] of Object.entries(usable))
  for (const element of document.querySelectorAll(`[data-${name}]`)) element.hidden = !isUsable
// Wallets are looked for when the visitor opens a step, and again if that failed.
for (const form of document.querySelectorAll('form[data-step]'))
  form.closest('details').addEventListener('toggle', () => {
    import('./wallet.js').then(
      ({ offerWallets }) => offerWallets(form),
      () => {},
    )
  })
if (document.querySelector('[data-scan]') !== null) void import('./scan.js')
const ownerTest = document.querySelector('form[data-owner]')
if (ownerTest !== null && (tapState !== undefined || heldTap() === undefined)) void testClaimant(ownerTest)
const watched = document.querySelector('[data-watch]')
if (watched !== null) void watchOwner(watched)
if (document.querySelector('[data-check]') !== null) void loadCheck()
document.addEventListener('click', (event) => {
  const element = event.target.closest(
    '[data-copy], [data-print], [data-download], [data-share], [data-retry], [data-language]',
  )
  const action = Object.keys(actions).find((name) => element?.dataset[name] !== undefined)
  if (action !== undefined) void actions[action](element, event)
})
document.addEventListener('submit', (event) => {
  const name = Object.keys(submits).find((each) => event.target.dataset[each] !== undefined)
  if (name === undefined) return
  event.preventDefault()
  void submits[name](event.target)
})
document.addEventListener('change', ({ target }) => {
  const place = target.closest('fieldset, section')?.querySelector('[data-spoken]')
  if (target.type !== 'radio' || !place) return
  const shown = [...document.querySelectorAll(place.dataset.spoken)].filter((part) => part.getClientRects().length > 0)
  place.replaceChildren(...shown.map((part) => element('p', part.textContent)))
})

/**
 * Takes the tap out of the address bar at once, so that a copied address holds none. The entry of the session history keeps the tap for as
 * long as the service lets it be repeated, so that a reload shows the same result. /tap becomes the address of the item that it shows.
 */
function keepTap() {
  const here = new URL(location.href)
  const search = new URLSearchParams(here.search)
  const tap = String(new URLSearchParams([...search].filter(([name]) => name === 'picc' || name === 'cmac')))
  if (tap !== '') {
    for (const name of ['picc', 'cmac']) search.delete(name)
    const rest = String(search)
    const until = tapState === 'tapped' ? Date.now() + Number(tapWindow) * 1000 : tapState === 'retry' ? Infinity : 0
    const path = here.pathname === '/tap' ? (document.body.dataset.path ?? '/tap') : here.pathname
    const address = `${path}${rest === '' ? '' : `?${rest}`}${here.hash}`
    history.replaceState(until > Date.now() ? { tap, until } : null, '', address)
  }
}

/** Opens the untapped page of a reload once more with its tap. */
function repeatTap() {
  const isRepeated = tapState === undefined && heldTap() !== undefined
  if (isRepeated) location.replace(withTap(new URL(location.href)))
  return isRepeated
}

/**
 * Keeps the answer about an item for a reload without a connection, in the memory of this tab. It keeps what was read,
 * without forms, tap and passport. The entry of the session history names the answer, so that another link does not show
 * it. The service worker brings the page that shows it.
 */
function keepAnswer() {
  const main = document.querySelector('main[data-field]')
  if (main === null || document.getElementById('verdict') === null || !/^\/(?:01|token)\//.test(location.pathname))
    return
  const copy = main.cloneNode(true)
  for (const element of copy.querySelectorAll('form, script, button, [data-scripted], .search, .share'))
    element.remove()
  const { lang, dir } = document.documentElement
  const strip = document.querySelector('.strip').innerHTML
  const answer = {
    path: location.pathname,
    at: Date.now(),
    title: document.title,
    lang,
    dir,
    strip,
    html: copy.outerHTML,
  }
  try {
    sessionStorage.setItem('answer', JSON.stringify(answer))
    history.replaceState({ ...history.state, answer: answer.at }, '')
    void navigator.serviceWorker?.register(new URL('./offline.js', import.meta.url), { scope: '/' }).catch(() => {})
  } catch {
    // A browser that keeps nothing shows its own page then.
  }
}

/** Shows the answer of this visit, in grey and marked as old; a warning stays red. */
function showLastAnswer() {
  const answer = lastAnswer()
  const all = JSON.parse(document.getElementById('offline').textContent)
  const asked = [answer?.lang, new URLSearchParams(location.search).get('lang'), navigator.language.slice(0, 2)]
  const lang = asked.find((one) => Object.hasOwn(all, one)) ?? 'en'
  const words = all[lang]
  document.documentElement.lang = lang
  document.documentElement.dir = words.dir
  for (const [selector, text] of Object.entries(words.shown)) document.querySelector(selector).textContent = text
  document.querySelector('.strip').setAttribute('aria-label', words.shown['.strip b'])
  if (answer === undefined) return
  document.title = answer.title
  const [strip, top, banner] = [document.querySelector('.strip'), element('div', ''), element('p', '')]
  top.className = 'top'
  banner.className = 'old'
  banner.setAttribute('role', 'alert')
  const time = new Intl.DateTimeFormat(lang, { dateStyle: 'long', timeStyle: 'short' }).format(new Date(answer.at))
  const retry = element('a', words.retry)
  retry.href = ''
  retry.dataset.retry = ''
  banner.append(`${words.old.replace('{time}', time)} `, retry)
  const main = document.querySelector('main')
  main.insertAdjacentHTML('beforebegin', answer.html)
  const old = main.previousElementSibling
  main.remove()
  if (old.querySelector('.verdict.tone-stop') === null) old.classList.add('past')
  strip.innerHTML = answer.strip
  strip.before(top)
  top.append(strip, banner)
  const eyebrow = old.querySelector('.verdict .label')
  if (eyebrow !== null) eyebrow.textContent = time // the chip was checked then
  // A picture that the browser did not keep leaves no empty box.
  for (const picture of old.querySelectorAll('.stage img'))
    picture.addEventListener('error', () => {
      picture.closest('.stage').remove()
      old.classList.remove('staged')
    })
}

function lastAnswer() {
  try {
    const answer = JSON.parse(sessionStorage.getItem('answer') ?? 'null')
    return answer?.at === history.state?.answer && answer?.path === location.pathname ? answer : undefined
  } catch {
    return undefined
  }
}

/** Adds the visitor's own time to each time in UTC. A day or a time of day alone becomes that of the visitor's zone. */
function localTimes() {
  const { lang } = document.documentElement
  for (const element of document.querySelectorAll('time[datetime]')) {
    const moment = new Date(element.dateTime)
    if (Number.isNaN(moment.getTime())) continue
    const kind = 'day' in element.dataset ? 'day' : 'clock' in element.dataset ? 'clock' : 'time'
    const text = new Intl.DateTimeFormat(lang, timeForms[kind]).format(moment)
    if (kind !== 'time') {
      element.title = element.dateTime
      element.textContent = text
    } else if (moment.getTimezoneOffset() !== 0) element.textContent = `${text} (${element.textContent.trim()})`
  }
}

function heldTap() {
  const { tap, until } = history.state ?? {}
  return typeof tap === 'string' && Date.now() < until ? tap : undefined
}

function withTap(address) {
  const tap = heldTap()
  return tap === undefined
    ? address.href
    : `${address.pathname}${address.search === '' ? '?' : `${address.search}&`}${tap}`
}

const actions = {
  async copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent
    button.dataset.label ??= button.textContent
    button.textContent = await navigator.clipboard.writeText(text).then(
      () => texts.copied,
      () => texts.notCopied,
    )
    setTimeout(() => (button.textContent = button.dataset.label), 2000)
  },
  share: (button) => navigator.share({ url: button.dataset.share }).catch(() => {}),
  print: () => window.print(),
  download(button) {
    const json = document.getElementById(button.dataset.download).textContent
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([json], { type: 'application/ld+json' }))
    link.download = 'passport.jsonld'
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  },
  retry(_link, event) {
    event.preventDefault()
    // A reload keeps the entry of the history, and so the answer that is shown without a connection.
    if (heldTap() === undefined || document.body.dataset.offline !== undefined) location.reload()
    else location.replace(withTap(new URL(location.href)))
  },
  language(link, event) {
    link.hash = location.hash // a certificate stands there
    if (heldTap() === undefined) return
    event.preventDefault()
    location.assign(withTap(new URL(link.href)))
  },
}

const submits = {
  recheck: recheckRecord,
  owner: testOwner,
  check: checkCertificate,
  /** Enter in a field starts the step where there is one wallet to choose. */
  step(form) {
    const buttons = form.querySelectorAll('.buttons button')
    if (buttons.length === 1) buttons[0].click()
  },
}

/** Checks a certificate that is pasted. The script may still be on its way. */
async function checkCertificate(form) {
  const loaded = await loadCheck()
  await loaded?.check(form.querySelector('textarea').value)
}

/** Loads the script, which first checks the certificate in the address. Without it, the page says that nothing was checked. */
async function loadCheck() {
  try {
    return await import('./check.js')
  } catch {
    const { noKeysTitle, unreachable } = JSON.parse(document.getElementById('check-texts').textContent)
    const place = document.querySelector('[data-checked]')
    place.hidden = false
    place.replaceChildren(element('h2', noKeysTitle), element('p', unreachable))
  }
}

/**
 * Compares the service's current verdict with the contract by the client library, at a provider that the visitor chose. The maker's texts are
 * compared with their hash there; texts without their document leave the outcome open.
 */
async function recheckRecord(form) {
  const outcome = outcomeOf(form)
  outcome(texts.recheckRunning)
  try {
    const [{ recheck }, verdict] = await Promise.all([
      import('./verdict/check/recheck.js'),
      verdictAt(form.dataset.recheck),
    ])
    const report = await recheck(verdict, {
      rpcUrl: form.elements.provider.value,
      contract: form.dataset.contract,
      metadata: async (hash) => (await request(`/api/metadata/${hash}`)).text(),
    })
    const block = String(verdict.chainRef?.block_number)
    const wrong = report.checks.filter(({ ok }) => !ok).map(({ field }) => field)
    const isSame = verdict.state === form.dataset.state && String(verdict.flagged) === form.dataset.flagged
    const text = {
      agrees: isSame ? texts.recheckSame : texts.recheckChanged,
      undecided: texts.recheckOpen,
      differs: texts.recheckDiffers,
    }[report.outcome]
    outcome(text.replace('{block}', block).replace('{fields}', wrong.join(', ')), report.ok && isSame, report.checks)
  } catch {
    outcome(texts.recheckFailed, false)
  }
}

/**
 * Says when the record gets another owner, or the offer does not stand any more. It looks for a quarter of an hour, while the page is seen.
 * It asks for the offer less often, because that takes from the budget of taps.
 */
async function watchOwner(place) {
  let first
  const end = Date.now() + 900_000
  for (let look = 1; Date.now() < end; look++) {
    const { owner_commitment: owner } = document.hidden ? {} : await verdictAt(place.dataset.watch).catch(() => ({}))
    first ??= owner
    if (owner !== undefined && owner !== first) return (place.textContent = place.dataset.text)
    if (place.textContent === '' && !document.hidden && look % 3 === 0 && (await isOver()))
      place.textContent = place.dataset.over
    await new Promise((resolve) => setTimeout(resolve, 5_000))
  }
}

/** Returns whether this page is not found any more, because its offer was withdrawn or accepted, or has ended. */
async function isOver() {
  const limits = { cache: 'no-store', signal: deadline(10_000) }
  return fetch(location.pathname, { method: 'HEAD', ...limits }).then(
    ({ status }) => status === 404,
    () => false,
  )
}

/** Compares the address inside the browser: only the record is fetched. */
async function testOwner(form) {
  const outcome = outcomeOf(form)
  const address = addressIn(form.elements.address.value)
  if (address === undefined) return outcome(texts.ownerInvalid, false)
  try {
    const [{ isOwner }, verdict] = await Promise.all([
      import('./verdict/rules/owner.js'),
      verdictAt(form.dataset.owner),
    ])
    const isIt = isOwner(verdict, address)
    outcome(isIt ? texts.ownerYes : texts.ownerNo, isIt)
  } catch {
    outcome(texts.recheckFailed, false)
  }
}

/** Tests the account that has just claimed the item. */
async function testClaimant(form) {
  const account = kept(form.dataset.owner)
  if (account === null) return
  form.closest('details').open = true
  form.elements.address.value = account
  await testOwner(form)
  form.scrollIntoView()
}

/** Takes a text out of the memory of this tab. A browser may have none. */
function kept(key) {
  try {
    const text = sessionStorage.getItem(key)
    sessionStorage.removeItem(key)
    return text
  } catch {
    return null
  }
}

/** Returns the one address in a text that was typed, pasted or scanned. */
export function addressIn(text) {
  const [address, ...others] = new Set(text.match(/0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/g))
  return others.length === 0 ? address : undefined
}

/** Returns a signal that aborts after some milliseconds. `AbortSignal.timeout` is missing in Safari 15. */
export function deadline(ms) {
  const abort = new AbortController()
  setTimeout(() => abort.abort(), ms)
  return abort.signal
}

/** Parses a URL as `URL.parse`, which browsers of before 2024 lack. */
export function urlOf(text) {
  try {
    return new URL(text)
  } catch {
    return null
  }
}

/** Reads the verdict on one item. An answer about another one is none. */
export async function verdictAt(path) {
  const verdict = await (await request(path)).json()
  if (!path.endsWith(`/${verdict.token_id}`)) throw new Error('the record of another item')
  return verdict
}

/** Reads a path of this host as it is now, within ten seconds. Throws for every status but one of success. */
export async function request(path, accept = 'application/json') {
  const response = await fetch(path, { cache: 'no-store', headers: { accept }, signal: deadline(10_000) })
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  return response
}

/** Returns a function that shows an outcome. It shows nothing once the form was sent again. */
function outcomeOf(form) {
  const place = form.querySelector('.outcome')
  const run = {}
  latestRuns.set(form, run)
  return (text, isGood, checks = []) => {
    if (latestRuns.get(form) !== run) return
    place.className = `outcome ${isGood === undefined ? '' : isGood ? 'yes' : 'no'}`
    place.replaceChildren(element('p', text), ...(checks.length > 0 ? [rowsOf(checks)] : []))
  }
}

function rowsOf(checks) {
  const rows = document.createElement('dl')
  rows.className = 'rows'
  for (const { field, ok, claimed, found } of checks) {
    const row = document.createElement('div')
    row.append(element('dt', `${ok ? '✓' : '✕'} ${field}`), element('dd', ok ? claimed : `${claimed} ≠ ${found}`))
    row.dir = 'ltr'
    rows.append(row)
  }
  return rows
}

/** Makes an element that holds a text. */
export function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}
