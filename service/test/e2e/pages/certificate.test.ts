/** Certificates of a check: PDF and vc+jwt after a tap (decisions/0041). */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { decodePDFRawStream, PDFDocument, PDFRawStream } from '@cantoo/pdf-lib'
import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import decodeQR from 'qr/decode.js'
import { certificatePdf } from '../../../src/pages/certificate/pdf.ts'
import { languages } from '../../../src/pages/languages.ts'
import { createSigner } from '../../../src/passport/signing/signer.ts'
import { hostOf } from '../../support/pages/host.ts'
import { documentedCheck } from '../../support/docs/passport-check.ts'
import { catchAllTerms, expanded } from '../../support/passport/documents.ts'
import { baseUrl } from '../../support/passport/fixtures.ts'
import {
  certificateOf,
  certificateView,
  certify as certifyTap,
  codeOf,
  pageAt,
  payloadOf,
  sendTicket,
  ticketIn,
  forgeTicket,
} from '../../support/pages/certificate.ts'
import { startPageWorld, type PageWorld } from '../../support/pages/pages.ts'

const world = await startPageWorld()
after(() => world.end())

type Item = Parameters<PageWorld['tapped']>[0]

/** Asks for a certificate after a fresh tap. */
async function certify(name: Item, as: 'pdf' | 'jwt' = 'jwt', lang = 'en'): Promise<Response> {
  return certifyTap(world, await world.tapped(name), { as, lang })
}

const post = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  sendTicket(world, fields, { headers })

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
    assert.equal((await (await documentedCheck())(jws, world.url)).id, credential['id'])
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
    const page = await pageAt(await world.tapped('activated'))
    const ticket = ticketIn(page)
    assert.equal((await post({ ticket })).status, 200)
    for (const wrong of ['', forgeTicket(ticket), ticket.replace(/^\d+/, '1')])
      assert.equal((await post({ ticket: wrong })).status, 400)
    assert.equal((await post({ ticket }, { 'Sec-Fetch-Site': 'cross-site' })).status, 400)
    assert.equal((await fetch(`${world.url}/certificate`)).status, 405)
    const stolen = await pageAt(await world.tapped('stolen'))
    const untapped = await pageAt(`${world.url}${await world.pathOf('activated')}`)
    for (const without of [stolen, untapped]) assert.ok(!without.includes('action="/certificate'))
    assert.ok(page.includes('value="jwt"') && !/value="(apple|google)"/.test(page))
    const tap = await pageAt(await world.tapped('chair'))
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
    const host = hostOf(world, { issuer: { ...issuer, signerFor: (did) => createSigner({ did, keys }) } })
    const { pathname, search } = new URL(await world.tapped('claimed'))
    const page = await (await host.request(`${pathname}${search}`, { headers: { Accept: 'text/html' } })).text()
    assert.match(page, /Genuine, just claimed/)
    assert.equal(ticketIn(page), '')
  })

  it('comes as a PDF of one page with the signed data inside, in each language', async () => {
    for (const lang of languages) {
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
    const view = { ...certificateView(world.contract), jws: await certificateOf(world, 'claimed') }
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
    const link = `https://verify.example/check#${await certificateOf(world, 'claimed')}`
    const { picture, modules } = codeOf(link)
    const { data, info } = await picture.ensureAlpha().raw().toBuffer({ resolveWithObject: true })
    assert.equal(decodeQR({ width: info.width, height: info.height, data }), link)
    assert.ok(modules <= 149, `${modules} modules`)
  })
})

/** The operators of the page's content stream, in which texts are hexadecimal. */
async function contentOf(bytes: Uint8Array): Promise<string> {
  const pdf = await PDFDocument.load(bytes, { updateMetadata: false })
  const streams = pdf.context
    .enumerateIndirectObjects()
    .flatMap(([, value]) => (value instanceof PDFRawStream ? [value] : []))
  const texts = streams.map((stream) => Buffer.from(decodePDFRawStream(stream).decode()).toString('latin1'))
  return texts.find((text) => text.includes('Tj')) ?? assert.fail('there is no text')
}
