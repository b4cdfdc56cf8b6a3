/**
 * The certificate as a pass of Google Wallet: a link that holds the pass, signed by the operator's account. Only the visitor's browser calls
 * Google, when the visitor follows the link.
 */
import { SignJWT } from 'jose'
import { cut, textsIn, type PageContext } from '../context.ts'
import { html } from '../html.ts'
import { formatTime } from '../languages.ts'
import { documentOf } from '../layout.ts'
import { certificateFacts, type CertificateFact } from './facts.ts'
import { serialOf, type GoogleSigner, type PassView } from './wallets.ts'

const saveUrl = 'https://pay.google.com/gp/v/save/'
/** Google calls this the safe length of the token: browsers may cut longer addresses. */
const longestToken = 1_800
/** Letters of the maker's name, as many as the token has room for. */
const nameLengths = [80, 40, 20, 0] as const
const blue = '#1d4d7e'

/** Returns the link that saves the pass. The certificate does not fit into it: its code is the page of the item. */
export async function googleLink(context: PageContext, view: PassView, signer: GoogleSigner): Promise<string> {
  let token = ''
  for (const letters of nameLengths) {
    token = await signed(passOf(context, view, { issuerId: signer.issuerId, letters }), view.at, signer)
    if (token.length <= longestToken) break
  }
  return saveUrl + token
}

function signed(payload: object, issuedAt: number, { account, key }: GoogleSigner): Promise<string> {
  return new SignJWT({ aud: 'google', typ: 'savetowallet', origins: [], payload })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(account)
    .setIssuedAt(issuedAt)
    .sign(key)
}

/** Writes class and object of the pass (Google Wallet, generic pass), in few letters. The tap's counter is not in it. */
function passOf(
  context: PageContext,
  view: PassView,
  { issuerId, letters }: { readonly issuerId: string; readonly letters: number },
) {
  const { certificate } = textsIn(context)
  const facts = new Map(certificateFacts(context, view).map((fact) => [fact.key, fact]))
  const classId = `${issuerId}.touchstone`
  const localized = (value: string) => ({ defaultValue: { language: context.language, value } })
  const rows: readonly (Omit<CertificateFact, 'key'> | undefined)[] = [
    shortened(facts.get('name'), letters),
    {
      label: certificate.time,
      value: `${formatTime(context.language, view.at)} · ${certificate.block} ${view.chainRef.blockNumber}`,
    },
    facts.get('serial') ?? facts.get('token'),
    { label: certificate.title, value: certificate.note },
  ]
  return {
    genericClasses: [{ id: classId }],
    genericObjects: [
      {
        id: `${issuerId}.${serialOf(view.jws)}`,
        classId,
        state: 'ACTIVE',
        cardTitle: localized(view.brand ?? view.issuerName),
        header: localized(facts.get('state')?.value ?? ''),
        hexBackgroundColor: blue,
        barcode: { type: 'QR_CODE', value: view.page },
        textModulesData: rows.flatMap((row) => (row === undefined ? [] : [{ header: row.label, body: row.value }])),
      },
    ],
  }
}

function shortened(fact: CertificateFact | undefined, letters: number): CertificateFact | undefined {
  if (fact === undefined || letters === 0) return undefined
  return { ...fact, value: cut(fact.value, letters) }
}

/** The page with the link, which says what Google receives. A form may not lead to another origin. */
export function googlePage(context: PageContext, link: string): string {
  const { certificate } = textsIn(context)
  return documentOf(context, {
    title: certificate.googleTitle,
    path: '/',
    field: 'empty',
    body: html`<div class="flow">
      <section class="card">
        <h1>${certificate.googleTitle}</h1>
        <p class="lead">${certificate.googleText}</p>
      </section>
      <p class="btns">
        <a class="btn" href="${link}" rel="noreferrer noopener"
          >${certificate.googleLink.replace('{host}', new URL(link).host)}</a
        >
      </p>
    </div>`,
  })
}
