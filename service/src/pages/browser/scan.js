/**
 * Reads a code by camera, from a picture or by NFC, and opens the page that it names. That page is of this host: a link
 * of another host is shown as text and never opened. Pictures stay in the browser.
 */
import { codeReader, readCamera } from './code-reader.js'
import { urlOf } from './page.js'

const card = document.querySelector('[data-scan]')
const texts = JSON.parse(document.getElementById('scan-texts').textContent)
const [viewer, video, place] = ['.viewer', 'video', '.outcome'].map((name) => card.querySelector(name))
const file = card.querySelector('input[type=file]')
/** The scan by camera that is awaited. */
let scanning

card.hidden = false
show('[data-camera]', navigator.mediaDevices?.getUserMedia !== undefined, scanCamera)
show('[data-nfc]', 'NDEFReader' in globalThis, scanTag)
card.querySelector('[data-stop]').addEventListener('click', stop)
file.addEventListener('change', () => void scanPicture(file.files[0]))

function show(name, isUsable, action) {
  const button = card.querySelector(name)
  button.hidden = !isUsable
  button.addEventListener('click', () => void action())
}

async function scanCamera() {
  const mine = (scanning = {})
  try {
    viewer.hidden = false
    say(texts.running)
    const code = await readCamera(video, await reader(), () => scanning === mine)
    if (code === undefined) return
    stop()
    open(code)
  } catch {
    if (scanning !== mine) return
    stop()
    say(texts.noCamera, false)
  }
}

function stop() {
  scanning = undefined
  viewer.hidden = true
  say('')
}

async function scanPicture(picture) {
  if (picture === undefined) return
  stop()
  say(texts.reading)
  try {
    const [read, bitmap] = await Promise.all([reader(), createImageBitmap(picture)])
    const code = await read(bitmap, bitmap.width, bitmap.height)
    if (code === undefined) say(texts.noCode, false)
    else open(code)
  } catch {
    say(texts.noCode, false)
  } finally {
    file.value = ''
  }
}

async function scanTag() {
  try {
    const tag = new globalThis.NDEFReader()
    tag.addEventListener('reading', ({ message }) => {
      const record = [...message.records].find(({ recordType }) => ['url', 'absolute-url', 'text'].includes(recordType))
      if (record === undefined) return say(texts.unreadable, false)
      open({ text: new TextDecoder(record.encoding ?? 'utf-8').decode(record.data) })
    })
    tag.addEventListener('readingerror', () => say(texts.noTag, false))
    await tag.scan()
    say(texts.runningTag)
  } catch {
    say(texts.noNfc, false)
  }
}

function reader() {
  return codeReader(['qr_code', 'data_matrix', 'ean_13', 'ean_8', 'upc_a', 'itf', 'code_128'])
}

/** Formats of retail bar codes, whose digits are a GTIN. */
const retail = ['ean_13', 'ean_8', 'upc_a', 'itf']
/** Pages that a code may open. A tap of this host's own chip is checked there. */
const pages = /^\/(?:01|token|tap|t|check|api\/verify|api\/dpp)(?:\/|\?|$)/

function open({ text, format }) {
  const { lang } = Object.fromEntries(new URLSearchParams(location.search))
  const ask = (fields) => location.assign(`/?${new URLSearchParams(lang === undefined ? fields : { ...fields, lang })}`)
  if (retail.includes(format)) return ask({ gtin: text, serial: '' })
  if (!/^\s*(?:[a-z][a-z0-9+.-]*:\/\/|www\.)/i.test(text))
    return text.length > 500 ? say(texts.unreadable, false) : ask({ find: text })
  const url = urlOf(text.trim())
  if (url?.origin !== location.origin || url.username !== '') return say(texts.foreign, false, text)
  if (!pages.test(url.pathname)) return say(texts.unreadable, false, text)
  location.assign(url.pathname + url.search + url.hash)
}

/** `text` is what a code holds: it is shown, and is no link. */
function say(sentence, isGood, text) {
  place.className = `outcome ${isGood === false ? 'no' : ''}`
  const lines = [sentence, text?.slice(0, 300)].filter(Boolean).map((line, index) => {
    const made = document.createElement('p')
    const inner = document.createElement('bdi')
    inner.textContent = line
    if (index > 0) inner.className = 'typed'
    made.append(inner)
    return made
  })
  place.replaceChildren(...lines)
}
