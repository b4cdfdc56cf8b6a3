/** Passes of Apple and Google Wallet after a tap, where the operator has the keys (decisions/0041). */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import sharp from 'sharp'
import { readConfig } from '../../../src/app/config/config.ts'
import { openWallets } from '../../../src/app/wallets.ts'
import { createLog } from '../../../src/lib/log.ts'
import { applePass } from '../../../src/pages/certificate/apple.ts'
import { googleLink } from '../../../src/pages/certificate/google.ts'
import type { PassView } from '../../../src/pages/certificate/wallets.ts'
import { languages, textsOf } from '../../../src/pages/languages.ts'
import { createTapTickets } from '../../../src/tap/tap-ticket.ts'
import { tapSecrets } from '../../../src/tap/tap-tokens.ts'
import { textAsDescribed } from '../../support/contract.ts'
import { testFolder } from '../../support/folder.ts'
import { hostileTexts } from '../../support/fuzz/hostile-text.ts'
import { noBrowser, startPageBrowser } from '../../support/pages/browser.ts'
import { certificateView, certify, pageAt, sendTicket, ticketIn } from '../../support/pages/certificate.ts'
import { startPageWorld } from '../../support/pages/pages.ts'
import { makeWalletKeys } from '../../support/pages/wallets.ts'

const run = promisify(execFile)
const folder = testFolder()
const keys = await makeWalletKeys()
const world = await startPageWorld({ env: keys.env })
after(() => world.end())

type Field = { key: string; label: string; value: string; dataDetectorTypes: string[]; attributedValue?: string }
type PassJson = Record<string, unknown> & {
  readonly generic: Readonly<Record<'primaryFields' | 'secondaryFields' | 'auxiliaryFields' | 'backFields', Field[]>>
  readonly barcodes: readonly { readonly message: string; readonly format: string; readonly altText: string }[]
}

type Localized = { readonly defaultValue: { readonly language: string; readonly value: string } }
type GoogleObject = Readonly<Record<'id' | 'classId', string>> & {
  readonly cardTitle: Localized
  readonly header: Localized
  readonly barcode: { readonly type: string; readonly value: string }
  readonly textModulesData: readonly { readonly header: string; readonly body: string }[]
}

let unpacked = 0
/** Unpacks passes with unzip and returns their folders. One shell starts it: each start by this process costs a copy of its memory. */
async function unpackAll(passes: readonly Uint8Array[]): Promise<readonly string[]> {
  const folders = passes.map(() => join(folder, String(++unpacked)))
  await Promise.all(passes.map((bytes, at) => writeFile(`${folders[at]}.pkpass`, bytes)))
  await run('sh', ['-ec', 'for at; do unzip -q "$at.pkpass" -d "$at"; done', 'sh', ...folders])
  return folders
}

const unpack = async (bytes: Uint8Array) => (await unpackAll([bytes]))[0] ?? ''

const passIn = async (at: string) => JSON.parse(await readFile(join(at, 'pass.json'), 'utf8')) as PassJson

/** Verifies the signature over the manifest by the operator's chain, with openssl. */
function verifySignature(at: string) {
  const [signature, content] = [join(at, 'signature'), join(at, 'manifest.json')]
  const options = ['-inform', 'DER', '-binary', '-purpose', 'any', '-CAfile', keys.at('ca.pem')]
  return run('openssl', ['cms', '-verify', '-in', signature, '-content', content, '-out', '/dev/null', ...options])
}

async function assertManifest(at: string): Promise<readonly string[]> {
  const manifest = JSON.parse(await readFile(join(at, 'manifest.json'), 'utf8')) as Record<string, string>
  for (const [name, hash] of Object.entries(manifest))
    assert.equal(
      createHash('sha1')
        .update(await readFile(join(at, name)))
        .digest('hex'),
      hash,
      name,
    )
  return Object.keys(manifest)
}

/** The parts of a pass of Google, from the page with its link. */
async function googlePassIn(page: string) {
  const [, link = ''] = /href="(https:\/\/pay\.google\.com\/gp\/v\/save\/[^"]+)"/.exec(page) ?? []
  return verifiedGooglePass(link)
}

async function verifiedGooglePass(link: string) {
  const token = link.replace('https://pay.google.com/gp/v/save/', '')
  assert.ok(token.length <= 1_800, `${token.length} characters`)
  const { payload } = await jwtVerify(token, keys.google, { algorithms: ['RS256'], audience: 'google' })
  const { genericClasses, genericObjects } = payload['payload'] as {
    genericClasses: { id: string }[]
    genericObjects: GoogleObject[]
  }
  const [object] = genericObjects
  assert.ok(object)
  assert.deepEqual([genericClasses.map(({ id }) => id), genericObjects.length], [[object.classId], 1])
  return { token, payload, object }
}

describe('a pass of Apple Wallet', () => {
  it('is a ZIP whose manifest and signature hold, and one changed byte breaks them', async () => {
    const answer = await certify(world, await world.tapped('claimed'), { as: 'apple' })
    assert.equal(answer.status, 200, await answer.clone().text())
    assert.equal(answer.headers.get('content-type'), 'application/vnd.apple.pkpass')
    assert.equal(answer.headers.get('content-disposition'), 'attachment; filename="touchstone-certificate.pkpass"')
    const at = await unpack(await answer.bytes())
    const names = await assertManifest(at)
    assert.deepEqual((await readdir(at)).toSorted(), [...names, 'manifest.json', 'signature'].toSorted())
    await verifySignature(at)
    for (const [name, side] of [
      ['icon.png', 29],
      ['icon@3x.png', 87],
      ['logo@2x.png', 100],
    ] as const) {
      const { format, width, height } = await sharp(join(at, name)).metadata()
      assert.deepEqual([format, width, height], ['png', side, side])
    }
    const manifest = await readFile(join(at, 'manifest.json'))
    manifest[20] = (manifest[20] ?? 0) ^ 1
    await writeFile(join(at, 'manifest.json'), manifest)
    await assert.rejects(verifySignature(at))
    const pass = await readFile(join(at, 'pass.json'))
    const other = await unpack(await (await certify(world, await world.tapped('claimed'), { as: 'apple' })).bytes())
    await writeFile(join(other, 'pass.json'), pass)
    await assert.rejects(assertManifest(other), /pass\.json/)
  })

  it('says what the record said, under the listed brand, and its code holds the whole certificate', async () => {
    const answer = await certify(world, await world.tapped('claimed'), { as: 'apple' })
    const pass = await passIn(await unpack(await answer.bytes()))
    assert.deepEqual(
      [
        pass['passTypeIdentifier'],
        pass['teamIdentifier'],
        pass['formatVersion'],
        pass['logoText'],
        pass['webServiceURL'],
      ],
      ['pass.com.example.verify', 'TEAM123456', 1, 'Maison Orvelle', undefined],
    )
    const { primaryFields, secondaryFields, auxiliaryFields, backFields } = pass.generic
    assert.deepEqual(
      primaryFields.map(({ value }) => value),
      [textsOf.en.states.CLAIMED],
    )
    assert.deepEqual(
      secondaryFields.map(({ label, value }) => [label, value]),
      [['Named by its maker, not checked', 'Satchel No. 7']],
    )
    const [time, block] = auxiliaryFields
    assert.match(time?.value ?? '', /20\d\d.*UTC/)
    const [code] = pass.barcodes
    const [address = '', jws = ''] = code?.message.split('#') ?? []
    assert.deepEqual([code?.format, address], ['PKBarcodeFormatQR', `${world.url}/check`])
    assert.ok((code?.message.length ?? 0) < 2_331, 'more than a QR code of level M holds')
    const claims = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as {
      credentialSubject: { assetStatus: { state: string; chainRef: { blockNumber: number } } }
    }
    const { assetStatus } = claims.credentialSubject
    assert.deepEqual([assetStatus.state, String(assetStatus.chainRef.blockNumber)], ['CLAIMED', block?.value])
    assert.ok(backFields.find(({ key }) => key === 'check')?.attributedValue?.includes(`href="${code?.message}"`))
    for (const secret of world.secrets) assert.ok(!JSON.stringify(pass).toLowerCase().includes(secret.toLowerCase()))
  })
})

describe('a pass of Google Wallet', () => {
  it('is a link that the service account signed, with class and object inside', async () => {
    const answer = await certify(world, await world.tapped('claimed'), { as: 'google' })
    assert.equal(answer.status, 200)
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.ok(!policy.includes('google') && !policy.includes('connect-src') && policy.includes("form-action 'none'"))
    const { token, payload, object } = await googlePassIn(await answer.text())
    assert.deepEqual(decodeProtectedHeader(token), { alg: 'RS256', typ: 'JWT' })
    assert.deepEqual([payload['typ'], payload['origins']], ['savetowallet', []])
    assert.equal(payload.iss, 'touchstone-passes@example-operator-472911.iam.gserviceaccount.com')
    assert.match(object.id, /^3388000000022345678\.[\w-]{22}$/)
    assert.equal(object.cardTitle.defaultValue.value, 'Maison Orvelle')
    assert.equal(object.header.defaultValue.value, textsOf.en.states.CLAIMED)
    assert.deepEqual(object.barcode, { type: 'QR_CODE', value: `${world.url}${await world.pathOf('claimed')}` })
    assert.equal(object.textModulesData[0]?.header, 'Named by its maker, not checked')
    const [head, body, signature] = token.split('.')
    const forged = Buffer.from(JSON.stringify({ ...payload, iat: 1 })).toString('base64url')
    assert.notEqual(forged, body)
    await assert.rejects(jwtVerify(`${head}.${forged}.${signature}`, keys.google))
  })

  it('fits into every language', async () => {
    for (const lang of languages) {
      const answer = await certify(world, await world.tapped('claimed'), { as: 'google', lang })
      const { object } = await googlePassIn(await answer.text())
      assert.equal(object.header.defaultValue.language, lang)
    }
  })
})

describe('both passes', () => {
  it('need a fresh ticket, and a record without a report', async () => {
    const ticket = ticketIn(await pageAt(await world.tapped('jacket')))
    const secrets = tapSecrets({ kek: Buffer.from(world.settings['TAG_KEK'] ?? '', 'hex') })
    const revokedBatches = async () => []
    const tickets = createTapTickets({ ...secrets, purpose: 'certificate', revokedBatches })
    const tagHash = `0x${Buffer.from(ticket.split('.')[4] ?? '', 'base64url').toString('hex')}` as const
    const tap = { tokenId: world.tokenOf('jacket'), tagHash, epoch: 0, tapCounter: 1, batchId: 'demo' }
    const aged = (ageSeconds: number) => tickets.issue({ ...tap, ageSeconds }) ?? ''
    const ended = createTapTickets({
      ...secrets,
      purpose: 'certificate',
      revokedBatches,
      now: () => Date.now() - 61_000,
    })
    for (const as of ['apple', 'google']) {
      assert.equal((await sendTicket(world, { ticket, as })).status, 200)
      assert.equal((await sendTicket(world, { as })).status, 400)
      assert.equal((await sendTicket(world, { ticket: aged(540), as })).status, 200)
      assert.equal(
        (await sendTicket(world, { ticket: ended.issue({ ...tap, ageSeconds: 540 }) ?? '', as })).status,
        400,
      )
    }
    await world.write({ kind: 'flag', tokenId: tap.tokenId, bits: 1, reasonHash: `0x${'0'.repeat(64)}` })
    for (const as of ['apple', 'google']) assert.equal((await sendTicket(world, { ticket, as })).status, 409)
  })

  it('are refused where the operator has set up none, with the forms that there are', async () => {
    const body = () => new URLSearchParams({ ticket: '1', as: 'apple' })
    const ask = (headers: Record<string, string> = {}) =>
      fetch(`${world.bareUrl}/certificate`, { method: 'POST', body: body(), headers })
    const page = await ask()
    assert.equal(page.status, 404)
    assert.match(await page.text(), /has not set up passes of this wallet.*PDF.*vc\+jwt/)
    const coded = await ask({ Accept: 'application/json' })
    const { error } = JSON.parse(await textAsDescribed('certify', coded)) as {
      error: { code: string; message: string }
    }
    assert.deepEqual([coded.status, error.code], [404, 'PASS_NOT_OFFERED'])
    assert.match(error.message, /PDF or `vc\+jwt`/)
    const problem = await ask({ Accept: 'application/problem+json' })
    assert.match(((await problem.json()) as { type: string }).type, /error-codes#pass_not_offered$/)
  })

  it('are no answer to another form: the error lists those that can be asked for', async () => {
    const ask = async (url: string, as: string) => {
      const answer = await fetch(`${url}/certificate`, {
        method: 'POST',
        body: new URLSearchParams({ ticket: '1', as }),
      })
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      return [answer.status, error.code, error.message]
    }
    const bare = 'The field as names one form of the certificate: pdf, jwt. Left out, it is pdf.'
    const whole = bare.replace('jwt', 'jwt, apple, google')
    for (const as of ['png', 'PDF', '', 'toString'])
      for (const [url, message] of [
        [world.bareUrl, bare],
        [world.url, whole],
      ] as const)
        assert.deepEqual(await ask(url, as), [400, 'INVALID_ARGUMENT', message], as)
  })

  it('hold the maker’s words in one labelled field of bounded length', async () => {
    const { apple, google } = await openWallets(
      readConfig(world.settings).passport,
      createLog(() => {}, 'silent'),
    )
    assert.ok(apple && google)
    const view: Omit<PassView, 'name'> = {
      ...certificateView(world.contract),
      jws: 'a.b.c',
      page: 'https://verify.example/01/09520003000001/21/S7-1182',
      brand: null,
    }
    const own = [
      '<b>Genuine!</b>',
      'https://evil.example call +41 44 668 18 00',
      '"},"logoText":"Genuine',
      'W'.repeat(500),
    ]
    for (const language of ['en', 'ar'] as const) {
      const context = { language, chosen: false, assets: '/assets/x' }
      const googleOf = async (name?: string): Promise<GoogleObject> =>
        (await verifiedGooglePass(await googleLink(context, { ...view, name }, google))).object
      const names = [...own, ...hostileTexts.map(({ input }) => input).filter((text) => text !== '')]
      const passes: Uint8Array[] = []
      for (const name of [undefined, ...names]) passes.push(await applePass(context, { ...view, name }, apple))
      const [plain, ...named] = await Promise.all((await unpackAll(passes)).map(passIn))
      const unnamed = await googleOf()
      for (const [index, name] of names.entries()) {
        const pass = named[index]
        assert.ok(pass)
        const [field] = pass.generic.secondaryFields
        assert.equal(field?.label, textsOf[language].verdict.named)
        assert.equal(field?.value, Array.from(name).slice(0, 80).join(''))
        assert.deepEqual(field?.dataDetectorTypes, [])
        assert.deepEqual({ ...pass, generic: { ...pass.generic, secondaryFields: [] } }, plain)

        const object = await googleOf(name)
        const isMakers = (row: { readonly header: string }) => row.header === textsOf[language].verdict.named
        const makers = object.textModulesData.filter(isMakers)
        assert.ok(makers.length === 1 || Buffer.byteLength(JSON.stringify(name)) > 80, 'a short name is left out')
        for (const { body } of makers) assert.ok(Array.from(body).length <= 80)
        assert.deepEqual(
          object.textModulesData.filter((row) => !isMakers(row)),
          unnamed.textModulesData,
        )
        assert.deepEqual({ ...object, textModulesData: [] }, { ...unnamed, textModulesData: [] })
      }
    }
  })

  it('are buttons of the page after a tap, which work in Chromium', { skip: noBrowser }, async () => {
    await using stack = new AsyncDisposableStack()
    const browser = stack.adopt(await startPageBrowser(world), (one) => one.close())
    await using page = await browser.open(await world.tapped('claimed'), { javaScriptEnabled: false })
    const apple = page.getByRole('button', { name: 'Add to Apple Wallet' })
    const [download] = await Promise.all([page.waitForEvent('download'), apple.click()])
    assert.equal(download.suggestedFilename(), 'touchstone-certificate.pkpass')
    await verifySignature(await unpack(await readFile(await download.path())))
    await page.getByRole('button', { name: 'Save to Google Wallet' }).click()
    await page.getByRole('heading', { name: 'Your pass for Google Wallet' }).waitFor()
    const link = page.getByRole('link', { name: 'Continue to pay.google.com' })
    await verifiedGooglePass((await link.getAttribute('href')) ?? '')
  })
})
