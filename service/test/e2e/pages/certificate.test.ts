/** Certificates of a check: PDF and vc+jwt after a tap, and the page that checks them in the browser (decisions/0041). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { decodePDFRawStream, PDFDocument, PDFRawStream } from '@cantoo/pdf-lib'
import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import decodeQR from 'qr/decode.js'
import sharp from 'sharp'
import { assetFlags } from '@touchstone/verdict'
import { verificationHost } from '../../../src/hosts/verification/host.ts'
import { createLog } from '../../../src/lib/log.ts'
import { certificatePdf } from '../../../src/pages/certificate/pdf.ts'
import { qrPath } from '../../../src/pages/qr.ts'
import { createSigner } from '../../../src/passport/signing/signer.ts'
import { catchAllTerms, expanded } from '../../support/passport/documents.ts'
import { baseUrl } from '../../support/passport/fixtures.ts'
import { certificateView, certify as certifyTap, sendTicket, ticketIn } from '../../support/pages/certificate.ts'
import { audit, noBrowser, shows, startPageBrowser, type PageBrowser } from '../../support/pages/browser.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'
import { eventually } from '../../support/wait.ts'

let world: PageWorld
before(async () => {
  world = await startPageWorld()
})
after(() => world?.end())

type Item = Parameters<PageWorld['tapped']>[0]

/** Asks for a certificate after a fresh tap. */
async function certify(name: Item, as: 'pdf' | 'jwt' = 'jwt', lang = 'en'): Promise<Response> {
  return certifyTap(world, await world.tapped(name), { as, lang })
}

const post = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  sendTicket(world, fields, { headers })

const jwtOf = async (name: Item) => (await certify(name)).text()

/** A JWS of the service's own keys over other claims. */
async function signed(payload: object, algorithm: 'ES256' | 'Ed25519' = 'ES256', kid?: string): Promise<string> {
  const key = world.components.issuer.keys().find((one) => one.algorithm === algorithm && one.status === 'active')
  const did = `did:web:127.0.0.1%3A${new URL(world.url).port}`
  const alg = algorithm === 'ES256' ? 'ES256' : 'EdDSA'
  const header = { alg, typ: 'vc+jwt', cty: 'vc', kid: kid ?? `${did}#${key?.id}` }
  const [head, body] = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signature = await key?.sign?.(Buffer.from(`${head}.${body}`))
  return `${head}.${body}.${Buffer.from(signature ?? []).toString('base64url')}`
}

const payloadOf = (jws: string) =>
  JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>

describe('a certificate', () => {
  it('is a credential that other libraries verify, with the verdict at its block and no owner', async () => {
    const answer = await certify('claimed')
    assert.equal(answer.headers.get('content-type'), 'application/vc+jwt')
    const jws = await answer.text()
    const did = (await (await world.get('/.well-known/did.json')).json()) as {
      verificationMethod: { id: string; publicKeyJwk?: Record<string, string> }[]
    }
    const { kid } = decodeProtectedHeader(jws)
    const method = did.verificationMethod.find(({ id }) => id === kid)
    await compactVerify(jws, await importJWK(method?.publicKeyJwk ?? {}, 'ES256'), { algorithms: ['ES256'] })
    const credential = payloadOf(jws)
    const terms = await expanded(JSON.parse(JSON.stringify(credential).replaceAll(world.url, baseUrl)))
    assert.deepEqual(catchAllTerms(terms), [])
    const { assetStatus } = credential['credentialSubject'] as { assetStatus: Record<string, unknown> }
    const { token_id: tokenId, ...verdict } = (await (
      await world.get(`/api/asset/${world.tokenOf('claimed')}`)
    ).json()) as Record<string, unknown> & { chainRef: { contract: string } }
    assert.deepEqual([assetStatus['state'], assetStatus['flagged']], [verdict['state'], verdict['flagged']])
    assert.deepEqual(
      [(assetStatus['chainRef'] as Record<string, unknown>)['tokenId'], world.contract.toLowerCase()],
      [tokenId, verdict.chainRef.contract.toLowerCase()],
    )
    assert.ok(
      !/0x[0-9a-f]{40}(?![0-9a-f])/i.test(
        JSON.stringify(credential).toLowerCase().replaceAll(world.contract.toLowerCase(), ''),
      ),
    )
    for (const secret of world.secrets) assert.ok(!JSON.stringify(credential).includes(secret))
  })

  it('needs a fresh ticket of its own page, and a record without a report', async () => {
    const page = await (await fetch(await world.tapped('activated'), { headers: { Accept: 'text/html' } })).text()
    const ticket = ticketIn(page)
    assert.equal((await post({ ticket })).status, 200)
    for (const wrong of ['', `${ticket.slice(0, -2)}AA`, ticket.replace(/^\d+/, '1')])
      assert.equal((await post({ ticket: wrong })).status, 400)
    assert.equal((await post({ ticket }, { 'Sec-Fetch-Site': 'cross-site' })).status, 400)
    assert.equal((await fetch(`${world.url}/certificate`)).status, 405)
    const stolen = await (await fetch(await world.tapped('stolen'), { headers: { Accept: 'text/html' } })).text()
    const untapped = await (await fetch(`${world.url}${await world.pathOf('activated')}`)).text()
    for (const without of [stolen, untapped]) assert.ok(!without.includes('action="/certificate'))
    assert.ok(page.includes('value="jwt"') && !/value="(apple|google)"/.test(page))
    const tap = await (await fetch(await world.tapped('chair'), { headers: { Accept: 'text/html' } })).text()
    await world.write({
      kind: 'flag',
      tokenId: world.tokenOf('chair'),
      bits: 1,
      reasonHash: `0x${'0'.repeat(64)}`,
    })
    assert.equal((await post({ ticket: ticketIn(tap) })).status, 409)
  })

  it('is not offered without a key that signs it', async () => {
    const { issuer } = world.components
    const keys = issuer.keys().filter(({ algorithm }) => algorithm === 'Ed25519')
    const host = verificationHost({
      ...world.components,
      issuer: { ...issuer, signerFor: (did) => createSigner({ did, keys }) },
      baseUrl: world.url,
      clientKey: () => '',
      log: createLog(() => {}, 'silent'),
    })
    const { pathname, search } = new URL(await world.tapped('claimed'))
    const page = await (await host.request(`${pathname}${search}`, { headers: { Accept: 'text/html' } })).text()
    assert.match(page, /Genuine, just claimed/)
    assert.equal(ticketIn(page), '')
  })

  it('comes as a PDF of one page with the signed data inside, in each language', async () => {
    for (const lang of ['en', 'de', 'fr', 'es', 'ar']) {
      const answer = await certify('claimed', 'pdf', lang)
      assert.equal(answer.headers.get('content-type'), 'application/pdf')
      const bytes = new Uint8Array(await answer.arrayBuffer())
      assert.ok(bytes.length < 60_000)
      const pdf = await PDFDocument.load(bytes, { updateMetadata: false })
      assert.equal(pdf.getPageCount(), 1)
      const [file] = pdf.getAttachments()
      assert.equal(file?.name, 'certificate.jwt')
      assert.equal(
        payloadOf(Buffer.from(file.data).toString())['issuer'],
        `did:web:127.0.0.1%3A${new URL(world.url).port}`,
      )
    }
  })

  it('is the same PDF for the same check, and takes hostile names and other scripts', async () => {
    const view = { ...certificateView(world.contract), jws: await jwtOf('claimed') }
    const context = { language: 'en', chosen: false, assets: '/assets/x' } as const
    for (const name of ['Satchel', ') Tj ET /JS (app.alert(1)) \\', 'حقيبة', '包', 'W'.repeat(200), undefined]) {
      const [one, other] = [
        await certificatePdf(context, { ...view, name }),
        await certificatePdf(context, { ...view, name }),
      ]
      assert.deepEqual(one, other)
      assert.ok(!Buffer.from(one).includes('/JS'))
      // 33 of the widest letter fit into the frame of the name.
      assert.ok(!/(?:57){34}/.test(await contentOf(one)), 'a line runs out of its frame')
    }
  })

  it('fits into a QR code that is read back', async () => {
    const link = `https://verify.example/check#${await jwtOf('claimed')}`
    const { picture, modules } = codeOf(link)
    const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
    assert.equal(decodeQR({ width: info.width, height: info.height, data }), link)
    assert.ok(modules <= 149, `${modules} modules`)
  })
})

/** A picture of the code of a paper, with six pixels for each module. */
function codeOf(link: string) {
  const { path, modules } = qrPath(link, 'L')
  const size = modules + 8
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`
  return { picture: sharp(Buffer.from(svg)).resize(size * 6, size * 6, { kernel: 'nearest' }), modules }
}

/** The operators of the page's content stream, in which texts are hexadecimal. */
async function contentOf(bytes: Uint8Array): Promise<string> {
  const pdf = await PDFDocument.load(bytes, { updateMetadata: false })
  const streams = pdf.context
    .enumerateIndirectObjects()
    .flatMap(([, value]) => (value instanceof PDFRawStream ? [value] : []))
  const texts = streams.map((stream) => Buffer.from(decodePDFRawStream(stream).decode()).toString('latin1'))
  return texts.find((text) => text.includes('Tj')) ?? assert.fail('there is no text')
}

describe('the page that checks a certificate', { skip: noBrowser }, () => {
  let browser: PageBrowser
  before(async () => {
    browser = await startPageBrowser(world)
  })
  after(() => browser?.close())

  const titles = {
    valid: 'The certificate is right',
    part: 'The signature is right, the rest is open',
    refused: 'Do not rely on it',
  }
  const open = (jws: string, more: Parameters<PageBrowser['open']>[1] = {}) =>
    browser.open(`${world.url}/check?lang=en#${jws}`, more)
  type Opened = Awaited<ReturnType<typeof open>>
  const says = (page: Opened, title: string) =>
    page.locator('[data-checked] h2').getByText(title, { exact: true }).waitFor({ timeout: 60_000 })

  /** Reads the block, again where a busy machine did not answer in time. */
  async function readBlock(page: Opened): Promise<void> {
    const isRead = page.getByText(/is on the chain, and the record says the same there/)
    const button = page.getByRole('button', { name: /^Read the block at/ })
    const isDone = await eventually(async () => {
      // The answer to an earlier click may hide the button before this one.
      if (await button.isVisible()) await button.click({ timeout: 1_000 }).catch(() => {})
      return isRead.isVisible()
    })
    assert.ok(isDone, isDone ? '' : await page.locator('[data-checked]').innerText())
  }

  it('is reached from a tap: the form gives the file, the link of the file opens the page', async () => {
    await using page = await browser.open(await world.tapped('claimed'), { javaScriptEnabled: false })
    await shows(page, 'Genuine, just claimed')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Certificate as PDF' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'touchstone-certificate.pdf')
    assert.equal((await readFile(await download.path())).subarray(0, 5).toString(), '%PDF-')
  })

  it('accepts the right one by signature, status, record and block, and sends it nowhere', async () => {
    const jws = await jwtOf('claimed')
    await using page = await browser.open(`${world.url}/check?lang=en`)
    const sent: string[] = []
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    await page.getByLabel('Certificate or its link').fill(`${world.url}/check#${jws}`)
    await page.getByRole('button', { name: 'Check' }).click()
    await says(page, titles.valid)
    const rows = page.locator('.checks li.yes')
    assert.equal(await rows.count(), 3)
    await readBlock(page)
    assert.equal(await rows.count(), 4)
    assert.ok(sent.some((one) => one.includes('/api/status/')))
    const parts = jws.split('.')
    assert.ok(!sent.some((one) => parts.some((part) => one.includes(part))))
    for (const scheme of ['light', 'dark'] as const) assert.deepEqual((await audit(page, scheme)).broken, [])
  })

  it('opens from the code of the paper, which the start page reads from a picture', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    const buffer = await codeOf(`${world.url}/check#${await jwtOf('claimed')}`)
      .picture.png()
      .toBuffer()
    const file = { name: 'paper.png', mimeType: 'image/png', buffer }
    await page.getByLabel('Or read a code from a picture').setInputFiles(file)
    await says(page, titles.valid)
    assert.equal(new URL(page.url()).pathname, '/check')
  })

  it('refuses one changed character anywhere', async () => {
    const jws = await jwtOf('claimed')
    const [head = '', body = ''] = jws.split('.')
    await using page = await browser.open(`${world.url}/check?lang=en`)
    for (const at of [5, head.length + 40, head.length + body.length - 3, jws.length - 20, jws.length - 1]) {
      const other = jws[at] === 'A' ? 'B' : 'A'
      await page.getByLabel('Certificate or its link').fill(jws.slice(0, at) + other + jws.slice(at + 1))
      await page.getByRole('button', { name: 'Check' }).click()
      await says(page, titles.refused)
      await page.reload()
    }
  })

  it('refuses another issuer, another key, another status list and a date in the future', async () => {
    const good = payloadOf(await jwtOf('claimed'))
    const later = new Date(Date.now() + 86_400_000).toISOString()
    const status = good['credentialStatus'] as object
    for (const [jws, reason] of [
      [await signed({ ...good, issuer: 'did:web:evil.example' }), /Another service is named.*did:web:evil\.example/],
      [await signed({ ...good, issuer: 'You won! Call 555' }), /Another service is named as its issuer: –/],
      [await signed(good, 'ES256', 'did:web:evil.example#key-1'), /The key that signed it is unknown/],
      [await signed(good, 'ES256', `${String(good['issuer'])}#key-9`), /The key that signed it is unknown/],
      [await signed({ ...good, validFrom: later }), /dated in the future/],
      [
        await signed({ ...good, credentialStatus: { ...status, statusListCredential: 'https://evil.example/list' } }),
        /no certificate of this service/,
      ],
      [await signed({ ...good, credentialStatus: undefined }), /no certificate of this service/],
      ['a.b.c', /no certificate of this service/],
    ] as const) {
      await using page = await open(jws)
      await says(page, titles.refused)
      await page.locator('[data-checked]').getByText(reason).waitFor()
    }
  })

  it('accepts EdDSA by the other key of the issuer', async () => {
    await using page = await open(await signed(payloadOf(await jwtOf('claimed')), 'Ed25519'))
    await says(page, titles.valid)
  })

  it('accepts a signed passport too', async () => {
    const path = `${world.url}/api/dpp${await world.pathOf('claimed')}`
    for (const profile of ['untp', 'w3c']) {
      const answer = await fetch(`${path}?${await world.tap('claimed')}&profile=${profile}`, {
        headers: { Accept: 'application/vc+jwt' },
      })
      assert.equal(answer.status, 200)
      await using page = await browser.open(`${world.url}/check?lang=en#${await answer.text()}`)
      await says(page, titles.valid)
    }
  })

  it('refuses a certificate whose block the chain does not have, or that says another state', async () => {
    const good = payloadOf(await jwtOf('claimed'))
    const subject = good['credentialSubject'] as { assetStatus: { chainRef: object } }
    const { assetStatus } = subject
    for (const [changed, reason] of [
      [{ ...assetStatus, chainRef: { ...assetStatus.chainRef, blockHash: `0x${'ab'.repeat(32)}` } }, /block is not on/],
      [{ ...assetStatus, state: 'ACTIVATED' }, /did not say this at its block/],
    ] as const) {
      await using page = await open(await signed({ ...good, credentialSubject: { ...subject, assetStatus: changed } }))
      await says(page, titles.valid)
      await page.getByRole('button', { name: /^Read the block at/ }).click()
      await says(page, titles.refused)
      await page.locator('[data-checked]').getByText(reason).waitFor()
    }
  })

  it('leaves the status open when its list comes in a form that it cannot read', async () => {
    await using page = await browser.open(`${world.url}/check?lang=en`)
    await page.route('**/api/status/**', async (route) => {
      const response = await route.fetch({ headers: { accept: 'application/vc' } })
      assert.equal(response.headers()['content-type'], 'application/vc')
      await route.fulfill({ response })
    })
    await page.getByLabel('Certificate or its link').fill(await jwtOf('claimed'))
    await page.getByRole('button', { name: 'Check' }).click()
    await says(page, titles.part)
    assert.equal(await page.locator('.checks li.yes').count(), 2)
  })

  for (const missing of ['provider', 'library'] as const)
    it(`reads the block again when the ${missing} did not answer`, async () => {
      await using page = await open(await jwtOf('claimed'), { allowed: /net::ERR_FAILED/ })
      await page.route(missing === 'provider' ? world.chainUrl : '**/verdict/**', (route) => route.abort())
      await page.getByRole('button', { name: /^Read the block at/ }).click()
      await page.getByText(/could not be read at this provider/).waitFor()
      await page.unrouteAll()
      await readBlock(page)
      await says(page, titles.valid)
    })

  it('keeps the answer about a later certificate when a provider answers late about an earlier one', async () => {
    const jws = await jwtOf('claimed')
    await using page = await open(jws)
    await says(page, titles.valid)
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route(world.chainUrl, async (route) => {
      await held
      await route.continue()
    })
    const isRead = page.waitForResponse((answer) => String(answer.request().postData()).includes('eth_call'))
    await page.getByRole('button', { name: /^Read the block at/ }).click()
    await page.getByLabel('Certificate or its link').fill(`${jws.slice(0, -1)}${jws.endsWith('A') ? 'Q' : 'A'}`)
    await page.getByRole('button', { name: 'Check' }).click()
    await says(page, titles.refused)
    release()
    await (await isRead).finished()
    // The page has dealt with the answer two frames after it came.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await says(page, titles.refused)
  })

  it('refuses a certificate whose item is reported or recycled now, whatever its status list says', async () => {
    const good = payloadOf(await jwtOf('claimed'))
    const subject = good['credentialSubject'] as { assetStatus: { chainRef: object } }
    for (const name of ['stolen', 'recycled'] as const) {
      const chainRef = { ...subject.assetStatus.chainRef, tokenId: String(world.tokenOf(name)) }
      const assetStatus = { ...subject.assetStatus, chainRef }
      await using page = await open(await signed({ ...good, credentialSubject: { ...subject, assetStatus } }))
      await says(page, titles.refused)
      await page.getByText(/It is suspended/).waitFor()
    }
  })

  it('refuses a state that the registry does not have', async () => {
    const good = payloadOf(await jwtOf('claimed'))
    const subject = good['credentialSubject'] as { assetStatus: object }
    const assetStatus = { ...subject.assetStatus, state: 'constructor' }
    await using page = await open(await signed({ ...good, credentialSubject: { ...subject, assetStatus } }))
    await says(page, titles.refused)
    await page
      .locator('[data-checked]')
      .getByText(/no certificate of this service/)
      .waitFor()
  })

  it('checks the signature without a connection, and says what stays open; without keys it checks nothing', async () => {
    const jws = await jwtOf('claimed')
    await using page = await open(jws, { viewport: { width: 390, height: 740 }, allowed: /ERR_INTERNET_DISCONNECTED/ })
    await says(page, titles.valid)
    await page.evaluate('navigator.serviceWorker.ready')
    await page.waitForFunction("caches.match('/check', { ignoreVary: true }).then((kept) => kept !== undefined)")
    await page.reload()
    await says(page, titles.valid)
    await page.context().setOffline(true)
    await page.reload()
    await says(page, titles.part)
    assert.equal(await page.locator('.checks li.yes').count(), 1)
    await page.getByText(/as it was kept on/).waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await page.getByLabel('Certificate or its link').fill(`${jws.slice(0, -1)}${jws.endsWith('A') ? 'Q' : 'A'}`)
    await page.getByRole('button', { name: 'Check' }).click()
    await says(page, titles.refused)
    await page.evaluate('caches.keys().then((names) => Promise.all(names.map((name) => caches.delete(name))))')
    await page.getByLabel('Certificate or its link').fill(jws)
    await page.getByRole('button', { name: 'Check' }).click()
    await says(page, 'Nothing was checked')
  })

  it('refuses a certificate of an item whose seal was opened since', async () => {
    const jws = await jwtOf('jacket')
    await using page = await open(jws)
    await says(page, titles.valid)
    const tokenId = world.tokenOf('jacket')
    await world.write({ kind: 'flag', tokenId, bits: assetFlags.TAMPER, reasonHash: `0x${'0'.repeat(64)}` })
    await page.reload()
    await says(page, titles.refused)
    await page.getByText(/its seal was opened/).waitFor()
  })

  it('refuses a certificate of an item that was reported since, and one by a revoked key', async () => {
    const [jws, other] = [await jwtOf('satchel'), await jwtOf('activated')]
    await using page = await open(jws)
    await says(page, titles.valid)
    await world.write({ kind: 'flag', tokenId: world.tokenOf('satchel'), bits: 1, reasonHash: `0x${'0'.repeat(64)}` })
    await page.reload()
    await says(page, titles.refused)
    await page.getByText(/It is suspended/).waitFor()
    const { issuer } = world.components
    const key = issuer.keys().find(({ algorithm, status }) => algorithm === 'ES256' && status === 'active')
    assert.equal(await issuer.change({ kind: 'rotate' }), null)
    assert.equal(await issuer.change({ kind: 'revoke', id: key?.id ?? '', at: new Date().toISOString() }), null)
    await using revoked = await open(other)
    await says(revoked, titles.refused)
    await revoked.getByText(/unknown, or was revoked/).waitFor()
  })
})
