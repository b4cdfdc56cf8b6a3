/**
 * Program of the process that decodes a picture. It reads the file on standard input and writes its forms as JSON. Supplier pictures are
 * hostile, so that no other work runs in this process, and it has no environment, no files to write and no database.
 */
import { buffer } from 'node:stream/consumers'
import sharp, { type OutputInfo, type Sharp } from 'sharp'
import { maxFormBytes, maxPixels, type PictureType, type PictureUse } from './limits.ts'

// Every other loader is off: SVG, PDF, TIFF, GIF and whatever else the library reads.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadWebpBuffer',
    'VipsForeignLoadHeifBuffer',
  ],
})
sharp.cache(false)
sharp.concurrency(1)

/** Longest sides in pixels, the first that fits. */
const sides: Readonly<Record<PictureUse, readonly number[]>> = {
  picture: [1_200, 1_000, 800, 640, 480, 320],
  detail: [480, 360, 240],
}
const qualities: Readonly<Record<PictureType, readonly number[]>> = {
  'image/avif': [58, 42],
  'image/webp': [80, 62],
  'image/jpeg': [78, 55],
}

/** `data` is in base64. */
type Encoded =
  | {
      readonly ok: true
      readonly width: number
      readonly height: number
      readonly forms: readonly { readonly type: PictureType; readonly data: string }[]
    }
  | { readonly ok: false; readonly reason: string }

type Pixels = { readonly data: Buffer; readonly info: OutputInfo }

const use = process.argv[2] === 'detail' ? 'detail' : 'picture'
process.stdout.write(JSON.stringify(await encode(await buffer(process.stdin))))

async function encode(file: Buffer): Promise<Encoded> {
  try {
    const pixels = await decode(file)
    // The forms that browsers choose from are of one size. The fallback may be smaller: its box is the same.
    const [webp, avif] = await fitTogether(pixels, ['image/webp', 'image/avif'])
    const jpeg = (await isOpaque(pixels)) ? await fitTogether(pixels, ['image/jpeg']) : []
    if (avif === undefined || webp === undefined) return { ok: false, reason: 'it does not get small enough' }
    return {
      ok: true,
      width: webp.width,
      height: webp.height,
      forms: [avif, webp, ...jpeg].map(({ type, data }) => ({ type, data: data.toString('base64') })),
    }
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'it cannot be decoded' }
  }
}

/** Decodes the first frame, turns it as its camera was held, and drops everything but its pixels. */
async function decode(file: Buffer): Promise<Pixels> {
  const [side = 0] = sides[use]
  return await sharp(file, { limitInputPixels: maxPixels, failOn: 'error', sequentialRead: true, pages: 1 })
    .timeout({ seconds: 20 })
    .autoOrient()
    .toColourspace('srgb')
    .resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true })
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true })
}

function open({ data, info: { width, height, channels } }: Pixels): Sharp {
  return sharp(data, { raw: { width, height, channels } }).timeout({ seconds: 20 })
}

async function isOpaque(pixels: Pixels): Promise<boolean> {
  return (await open(pixels).stats()).isOpaque
}

type Form = { readonly type: PictureType; readonly data: Buffer; readonly width: number; readonly height: number }

/** Returns a form of each type at the largest side at which all fit; none where none does. */
async function fitTogether(pixels: Pixels, types: readonly PictureType[]): Promise<readonly Form[]> {
  for (const side of sides[use]) {
    const forms: Form[] = []
    for (const type of types) {
      const form = await fitAt(pixels, side, type)
      if (form === null) break
      forms.push(form)
    }
    if (forms.length === types.length) return forms
  }
  return []
}

async function fitAt(pixels: Pixels, side: number, type: PictureType): Promise<Form | null> {
  for (const quality of qualities[type]) {
    const image = open(pixels).resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true })
    const { data, info } = await encodedAs(image, type, quality).toBuffer({ resolveWithObject: true })
    if (data.length <= maxFormBytes) return { type, data, width: info.width, height: info.height }
  }
  return null
}

function encodedAs(image: Sharp, type: PictureType, quality: number): Sharp {
  if (type === 'image/avif') return image.avif({ quality, effort: 3 })
  if (type === 'image/webp') return image.webp({ quality, effort: 5, smartSubsample: true })
  return image.flatten({ background: '#fff' }).jpeg({ quality, mozjpeg: true })
}
