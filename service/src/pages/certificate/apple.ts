/**
 * The certificate as a pass of Apple Wallet: a signed ZIP of texts and pictures (`.pkpass`). Its QR code holds the whole certificate, as on
 * paper. The pass is never updated, and Apple is not called.
 */
import { readFile } from 'node:fs/promises'
import { PassType, PKPass, type Field } from 'passkit-generator'
import sharp from 'sharp'
import { textsIn, type PageContext } from '../context.ts'
import { formatTime } from '../languages.ts'
import { certificateFacts, type CertificateFact } from './facts.ts'
import { serialOf, type AppleSigner, type PassView } from './wallets.ts'

/** White on the blue of `/check`, with a contrast of 8.7. */
const colours = {
  backgroundColor: 'rgb(29, 77, 126)',
  foregroundColor: 'rgb(255, 255, 255)',
  labelColor: 'rgb(226, 236, 246)',
}

export async function applePass(
  context: PageContext,
  view: PassView,
  { passType, team, certificate, key, intermediate }: AppleSigner,
): Promise<Uint8Array<ArrayBuffer>> {
  const { certificate: texts, frame } = textsIn(context)
  const certificates = { signerCert: certificate, signerKey: key, wwdr: intermediate }
  const organization = view.brand ?? view.issuerName
  const pass = new PKPass(pictures, certificates, {
    ...colours,
    passTypeIdentifier: passType,
    teamIdentifier: team,
    serialNumber: serialOf(view.jws),
    organizationName: organization,
    logoText: organization,
    description: texts.title,
  })
  const facts = certificateFacts(context, view)
  const link = `${view.checkUrl}#${view.jws}`
  const generic = new PassType('generic')
  generic.primaryFields.push(...facts.filter(({ key: name }) => name === 'state').map(fieldOf))
  generic.secondaryFields.push(...facts.filter(({ key: name }) => name === 'name').map(fieldOf))
  generic.auxiliaryFields.push(
    fieldOf({ key: 'time', label: texts.time, value: formatTime(context.language, view.at) }),
    fieldOf({ key: 'number', label: texts.block, value: String(view.chainRef.blockNumber) }),
  )
  generic.backFields.push(
    fieldOf({ key: 'note', label: texts.title, value: `${texts.note} ${frame.testnet} ${frame.testnetMore}` }),
    {
      ...fieldOf({ key: 'check', label: texts.scan, value: link }),
      attributedValue: `<a href="${link}">${view.checkUrl}</a>`,
    },
    ...facts.filter(({ key: name }) => name !== 'name' && name !== 'state').map(fieldOf),
  )
  pass.types.push(generic)
  pass.setBarcodes({
    format: 'PKBarcodeFormatQR',
    message: link,
    messageEncoding: 'iso-8859-1',
    altText: frame.testnet,
  })
  return new Uint8Array(pass.getAsBuffer())
}

/** Wallet makes links of addresses and telephone numbers that it detects in a field, unless the list is empty. */
function fieldOf({ key, label, value }: Pick<CertificateFact, 'label' | 'value'> & { readonly key: string }): Field {
  return { key, label, value, dataDetectorTypes: [] }
}

async function drawPictures(): Promise<Record<string, Buffer>> {
  const svg = await readFile(new URL('../browser/icon.svg', import.meta.url))
  const sizes = Object.entries({ icon: 29, logo: 50 }).flatMap(([name, side]) =>
    [1, 2, 3].map((scale) => [`${name}${scale === 1 ? '' : `@${scale}x`}.png`, side * scale] as const),
  )
  const files = sizes.map(async ([name, side]) => {
    // The SVG has 24 pixels at 72 dpi.
    const picture = await sharp(svg, { density: 3 * side })
      .resize(side, side)
      .png()
      .toBuffer()
    return [name, picture] as const
  })
  return Object.fromEntries(await Promise.all(files))
}

/** The icon of the service in the sizes of Apple. */
const pictures = await drawPictures()
