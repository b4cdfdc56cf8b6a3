/**
 * The certificate as a PDF of one page, A4. The same certificate has the same bytes. Every PDF reader has its fonts, which are Latin-1: Arabic
 * visitors get it in English. A name in other letters is left out, and the page says so.
 */
import { PDFDocument, StandardFonts, rgb, type PDFFont, type PDFPage } from '@cantoo/pdf-lib'
import { textsIn, type PageContext } from '../context.ts'
import { formatTime, languageFacts } from '../languages.ts'
import { qrPath } from '../qr.ts'
import { certificateFacts, type CertificateView } from './facts.ts'

const [width, height, margin] = [595.28, 841.89, 56]
const [ink, grey, line] = [rgb(0.1, 0.13, 0.15), rgb(0.32, 0.36, 0.4), rgb(0.86, 0.86, 0.84)]
const [strip, stripInk] = [rgb(0.957, 0.918, 0.824), rgb(0.36, 0.263, 0.03)]
/** Side of the QR code in points, 78 mm: a telephone reads more than a thousand characters of it. */
const codeSide = 221

export async function certificatePdf(context: PageContext, view: CertificateView): Promise<Uint8Array<ArrayBuffer>> {
  const printed = { ...context, language: languageFacts[context.language].isLatin ? context.language : ('en' as const) }
  const { certificate, frame } = textsIn(printed)
  const document = await PDFDocument.create({ updateMetadata: false })
  const at = new Date(view.at * 1000)
  document.setTitle(certificate.title, { showInWindowTitleBar: true })
  document.setLanguage(printed.language)
  document.setProducer('Touchstone')
  document.setCreationDate(at)
  document.setModificationDate(at)
  const [text, bold, mono] = await Promise.all(
    [StandardFonts.Helvetica, StandardFonts.HelveticaBold, StandardFonts.Courier].map((font) =>
      document.embedFont(font),
    ),
  )
  if (text === undefined || bold === undefined || mono === undefined) throw new Error('A standard font is missing.')
  const page = document.addPage([width, height])
  const write = writerOn(page)

  page.drawRectangle({ x: 0, y: height - 30, width, height: 30, color: strip })
  write(`${frame.testnet} ${frame.testnetMore}`, { y: height - 19, font: bold, size: 9, color: stripInk })
  let y = write(certificate.title, { y: height - 84, font: bold, size: 26 })
  const time = formatTime(printed.language, view.at)
  y = write(certificate.says.replace('{time}', time), { y: y - 14, font: text, size: 12 })

  y -= 4
  for (const { name, value, font, isFramed } of rowsOf(printed, view, { text, mono })) {
    page.drawLine({ start: { x: margin, y: y + 2 }, end: { x: width - margin, y: y + 2 }, thickness: 0.5, color: line })
    const top = y - 12
    const label = write(name, { y: top, font: text, size: 9, color: grey, most: 120 })
    const size = font === mono ? 8.5 : 11
    const below = write(value, { x: margin + 136, y: top, font, size })
    if (isFramed === true) frameAround(page, { top: top + size + 2, bottom: below + size - 4 })
    y = Math.min(label, below) + 4
  }
  const top = Math.min(y - 20, 360)
  const { path, modules } = qrPath(`${view.checkUrl}#${view.jws}`, 'L')
  const scale = codeSide / modules
  page.drawSvgPath(path, { x: margin - 4 * scale, y: top + 4 * scale, scale, color: rgb(0, 0, 0), borderWidth: 0 })
  const side = { x: margin + codeSide + 24, most: width - 2 * margin - codeSide - 24 }
  const below = write(certificate.scan, { ...side, y: top - 10, font: bold, size: 12 })
  const next = write(certificate.scanText, { ...side, y: below - 6, font: text, size: 10, color: grey })
  write(view.checkUrl, { ...side, y: next - 8, font: mono, size: 8.5 })
  write(certificate.paper, { y: top - codeSide - 26, font: text, size: 10 })

  const file = Buffer.from(view.jws)
  await document.attach(file, 'certificate.jwt', {
    mimeType: 'application/vc+jwt',
    description: certificate.jwt,
    creationDate: at,
    modificationDate: at,
  })
  return new Uint8Array(await document.save())
}

type Row = { readonly name: string; readonly value: string; readonly font: PDFFont; readonly isFramed?: boolean }

function rowsOf(
  context: PageContext,
  view: CertificateView,
  { text, mono }: { readonly text: PDFFont; readonly mono: PDFFont },
): readonly Row[] {
  const { certificate } = textsIn(context)
  return certificateFacts(context, view).map(({ key, label: name, value }) => {
    if (key === 'state') return { name, value, font: text }
    if (key === 'issuer') return { name, value: `${printable(view.issuerName, text) ?? ''}\n${view.did}`, font: text }
    if (key !== 'name') return { name, value, font: mono }
    const shown = printable(value, text)
    return { name, value: shown ?? certificate.otherLetters, font: text, isFramed: shown !== null }
  })
}

/** Draws the frame of the maker's words, which are not checked. */
function frameAround(page: PDFPage, { top, bottom }: { readonly top: number; readonly bottom: number }): void {
  page.drawRectangle({
    x: margin + 130,
    y: bottom,
    width: width - 2 * margin - 130,
    height: top - bottom,
    borderColor: grey,
    borderWidth: 0.6,
    borderDashArray: [3, 2],
  })
}

/** Returns the text where the font has all its letters, else null. */
function printable(text: string, font: PDFFont): string | null {
  const letters = new Set(font.getCharacterSet())
  return Array.from(text).every((letter) => letters.has(letter.codePointAt(0) ?? 0)) ? text : null
}

type Style = {
  readonly x?: number
  readonly y: number
  readonly font: PDFFont
  readonly size: number
  readonly color?: ReturnType<typeof rgb>
  /** Width in points. */
  readonly most?: number
}

/** Returns a function that writes lines and returns the base line below them. Words that are too long are cut. */
function writerOn(page: PDFPage) {
  return (text: string, { x = margin, y, font, size, color = ink, most = width - margin - x }: Style): number => {
    let base = y
    for (const row of linesOf(text.replace(/[\u{a0}\u{202f}\u{2009}]/gu, ' '), font, size, most)) {
      page.drawText(row, { x, y: base, font, size, color })
      base -= size * 1.35
    }
    return base
  }
}

function linesOf(text: string, font: PDFFont, size: number, most: number): readonly string[] {
  const fits = (row: string) => font.widthOfTextAtSize(row, size) <= most
  const rows: string[] = []
  for (const paragraph of text.split('\n')) {
    let row = ''
    for (const word of paragraph.split(' ').flatMap((one) => piecesOf(one, fits))) {
      const longer = row === '' ? word : `${row} ${word}`
      if (row !== '' && !fits(longer)) {
        rows.push(row)
        row = word
      } else row = longer
    }
    rows.push(row)
  }
  return rows
}

/** Cuts a word that is longer than a line, so that hostile text stays inside its frame. */
function piecesOf(word: string, fits: (text: string) => boolean): readonly string[] {
  const pieces = ['']
  for (const letter of word) {
    const longer = `${pieces.at(-1) ?? ''}${letter}`
    if (fits(longer)) pieces[pieces.length - 1] = longer
    else pieces.push(letter)
  }
  return pieces
}
