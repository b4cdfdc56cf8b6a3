/** The page that checks a certificate in the browser (decisions/0041). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { assetFlags } from '@touchstone/verdict'
import { choosePicture } from '../../support/pages/camera.ts'
import { certificateOf, codeOf, payloadOf } from '../../support/pages/certificate.ts'
import {
  audit,
  noBrowser,
  shows,
  startBrowser,
  startPageBrowser,
  type PageBrowser,
} from '../../support/pages/browser.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'
import { eventually } from '../../support/wait.ts'

const world = await startPageWorld()
after(() => world.end())

const jwtOf = (name: Parameters<PageWorld['tapped']>[0]) => certificateOf(world, name)

type Json = Readonly<Record<string, unknown>>

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

describe('the page that checks a certificate', { skip: noBrowser }, () => {
  let browser: PageBrowser
  before(async () => {
    browser = await startPageBrowser(world)
  })
  after(() => browser?.close())

  const titles = {
    valid: 'The certificate is right',
    part: 'Not fully checked',
    refused: 'Do not rely on it',
  }
  const open = (jws: string, more: Parameters<PageBrowser['open']>[1] = {}) =>
    browser.open(`${world.url}/check?lang=en#${jws}`, more)
  type Opened = Awaited<ReturnType<typeof open>>
  async function says(page: Opened, title: string): Promise<void> {
    const said = page.locator('[data-checked] h2').getByText(title, { exact: true }).waitFor({ timeout: 240_000 })
    await said.catch(async () => assert.fail(await page.locator('[data-checked]').innerText()))
  }

  /** Pastes a certificate, and checks it. */
  async function paste(page: Opened, text: string): Promise<void> {
    await page.getByLabel('Certificate or its link').fill(text)
    await page.getByRole('button', { name: 'Check' }).click()
  }

  /** Reads the block, again where a busy machine did not answer in time. */
  async function readBlock(page: Opened): Promise<void> {
    const isRead = page.getByText(/is on the blockchain, and the record says the same there/)
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
    await paste(page, `${world.url}/check#${jws}`)
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

  it('checks the same certificate in another language', async () => {
    await using page = await open(await jwtOf('claimed'))
    await says(page, titles.valid)
    await page.locator('.lang summary').click()
    await page.getByRole('link', { name: 'Deutsch' }).click()
    await says(page, 'Das Zertifikat ist richtig')
  })

  it('opens from the code of the paper, which the start page reads from a picture', async () => {
    await using page = await browser.open(`${world.url}/?lang=en`)
    await choosePicture(page, codeOf(`${world.url}/check#${await jwtOf('claimed')}`).picture)
    await says(page, titles.valid)
    assert.equal(new URL(page.url()).pathname, '/check')
  })

  it('refuses one changed character anywhere', async () => {
    const jws = await jwtOf('claimed')
    const [head = '', body = ''] = jws.split('.')
    await using page = await browser.open(`${world.url}/check?lang=en`)
    for (const at of [5, head.length + 40, head.length + body.length - 3, jws.length - 20, jws.length - 1]) {
      const other = jws[at] === 'A' ? 'B' : 'A'
      await paste(page, jws.slice(0, at) + other + jws.slice(at + 1))
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

  it('refuses what has ended, also by a clock that is slow, and allows for one where it begins', async () => {
    const good = payloadOf(await jwtOf('claimed'))
    const at = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
    await using ended = await open(await signed({ ...good, validUntil: at(-60) }))
    await says(ended, titles.refused)
    await ended.getByText('It has ended.').waitFor()
    await using begins = await open(await signed({ ...good, validFrom: at(60) }))
    await says(begins, titles.valid)
    await using slow = await browser.open(`${world.url}/check?lang=en`)
    await slow.clock.setFixedTime(at(-7_200))
    for (const [claims, title] of [
      [good, titles.valid],
      [{ ...good, validUntil: at(-3_600) }, titles.refused],
    ] as const) {
      await paste(slow, await signed(claims))
      await says(slow, title)
    }
  })

  it('leaves open what a list without an end, in another encoding, or a record of another item or form says', async () => {
    const jws = await jwtOf('claimed')
    const [{ statusListCredential }] = [payloadOf(jws)['credentialStatus'] ?? []].flat() as [
      { statusListCredential: string },
    ]
    const answer = await fetch(statusListCredential, { headers: { Accept: 'application/vc+jwt' } })
    const list = payloadOf(await answer.text())
    const subject = list['credentialSubject'] as { encodedList: string }
    const credentialSubject = { ...subject, encodedList: `z${subject.encodedList.slice(1)}` }
    const ended = new Date(Date.now() - 60_000).toISOString()
    const { chain_id, contract } = ((await (await world.get('/api/asset/5')).json()) as { chainRef: Json }).chainRef
    const records = [{ token_id: '7777' }, { flagged: undefined }, { chainRef: { chain_id, contract } }]
    for (const changed of [
      { ...list, validUntil: undefined },
      { ...list, validUntil: ended },
      { ...list, credentialSubject },
      ...records,
    ]) {
      await using page = await browser.open(`${world.url}/check?lang=en`)
      if ('validFrom' in changed) {
        const body = await signed(changed)
        await page.route('**/api/status/**', (route) => route.fulfill({ contentType: 'application/vc+jwt', body }))
      } else
        await page.route('**/api/asset/**', async (route) => {
          const response = await route.fetch()
          await route.fulfill({ response, json: { ...((await response.json()) as object), ...changed } })
        })
      await paste(page, jws)
      await says(page, titles.part)
      assert.equal(await page.locator('.checks li.yes').count(), 2)
    }
  })

  it('refuses a key that the document of the issuer gives to somebody else', async () => {
    await using page = await browser.open(`${world.url}/check?lang=en`)
    await page.route('**/.well-known/did.json', async (route) => {
      const response = await route.fetch()
      const document = (await response.json()) as { verificationMethod: object[] }
      const verificationMethod = document.verificationMethod.map((one) => ({
        ...one,
        controller: 'did:web:evil.example',
      }))
      await route.fulfill({ response, json: { ...document, verificationMethod } })
    })
    await paste(page, await jwtOf('claimed'))
    await says(page, titles.refused)
    await page.getByText(/The key that signed it is unknown/).waitFor()
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

  it('checks nothing in a browser that cannot: over plain http, or without Ed25519', async () => {
    const jws = await jwtOf('claimed')
    const plain = world.url.replace('127.0.0.1', 'shop.test')
    await using elsewhere = await startBrowser([plain], ['--host-resolver-rules=MAP shop.test 127.0.0.1'])
    await using insecure = await elsewhere.open(`${plain}/check?lang=en#${jws}`)
    await using old = await browser.open(`${world.url}/check?lang=en`)
    await old.addInitScript(`{
      const { importKey } = SubtleCrypto.prototype
      SubtleCrypto.prototype.importKey = function (format, key, algorithm, ...more) {
        if (algorithm.name === 'Ed25519') return Promise.reject(new DOMException('Unrecognized name', 'NotSupportedError'))
        return importKey.call(this, format, key, algorithm, ...more)
      }
    }`)
    await old.goto(`${world.url}/check#${await signed(payloadOf(jws), 'Ed25519')}`)
    for (const page of [insecure, old]) {
      await says(page, 'Nothing was checked')
      await page.getByText(/^This browser cannot check signatures here/).waitFor()
      assert.equal(await page.locator('[data-checked].tone-none').count(), 1)
      await paste(page, 'a.b.c')
      await says(page, titles.refused) // no signature is needed to say so
    }
  })

  it('leaves the status open when its list comes in a form that it cannot read', async () => {
    await using page = await browser.open(`${world.url}/check?lang=en`)
    await page.route('**/api/status/**', async (route) => {
      const response = await route.fetch({ headers: { accept: 'application/vc' } })
      assert.equal(response.headers()['content-type'], 'application/vc')
      await route.fulfill({ response })
    })
    await paste(page, await jwtOf('claimed'))
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

  it('checks what was pasted before its script was there, and says so where the script does not come', async () => {
    const jws = await jwtOf('claimed')
    await using page = await browser.open('about:blank')
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/check.js', async (route) => {
      await held
      await route.continue()
    })
    await page.goto(`${world.url}/check?lang=en`, { waitUntil: 'commit' })
    await paste(page, jws)
    release()
    await says(page, titles.valid)
    // In a browser that has kept no script.
    await using bare = await browser.open('about:blank', { allowed: /ERR_FAILED/ })
    await bare.route('**/check.js', (route) => route.abort())
    await bare.goto(`${world.url}/check?lang=en`)
    await says(bare, 'Nothing was checked')
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
    const isRead = page.waitForResponse((answer) => String(answer.request().postData()).includes('0xeac8f5b8'))
    await page.getByRole('button', { name: /^Read the block at/ }).click()
    await paste(page, `${jws.slice(0, -1)}${jws.endsWith('A') ? 'Q' : 'A'}`)
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

  it('refuses an algorithm that only the language has', async () => {
    const [, body, signature] = (await jwtOf('claimed')).split('.')
    const [head = ''] = (await signed({})).split('.')
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as object
    for (const alg of ['constructor', 'toString', '__proto__', { toString: 1 }]) {
      const changed = Buffer.from(JSON.stringify({ ...header, alg })).toString('base64url')
      await using page = await open(`${changed}.${body}.${signature}`)
      await says(page, titles.refused)
    }
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
    const ended = { ...payloadOf(jws), validUntil: new Date(Date.now() - 3_600_000).toISOString() }
    await page.clock.setFixedTime(Date.now() - 7_200_000)
    await paste(page, await signed(ended))
    await says(page, titles.refused)
    await page.getByText('It has ended.').waitFor()
    await paste(page, jws)
    await says(page, titles.part)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await paste(page, `${jws.slice(0, -1)}${jws.endsWith('A') ? 'Q' : 'A'}`)
    await says(page, titles.refused)
    await page.evaluate('caches.keys().then((names) => Promise.all(names.map((name) => caches.delete(name))))')
    await paste(page, jws)
    await says(page, 'Nothing was checked')
  })

  it('refuses a certificate of an item whose seal was opened since, also where another of its lists cannot be read', async () => {
    const jws = await jwtOf('jacket')
    await using page = await open(jws)
    await says(page, titles.valid)
    const tokenId = world.tokenOf('jacket')
    await world.write({ kind: 'flag', tokenId, bits: assetFlags.TAMPER, reasonHash: `0x${'0'.repeat(64)}` })
    await page.reload()
    await says(page, titles.refused)
    await page.getByText(/its seal was opened/).waitFor()
    const { credentialStatus: suspended, ...rest } = payloadOf(jws)
    const unread = { ...(suspended as Json), statusListCredential: `${world.url}/api/status/revocation/999999` }
    await using second = await open(await signed({ ...rest, credentialStatus: [unread, suspended] }))
    await says(second, titles.refused)
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
