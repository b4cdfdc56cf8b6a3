import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import sharp from 'sharp'
import { encodePicture } from './encode.ts'
import { maxFormBytes, type PictureForm, type PictureUse } from './limits.ts'

/** Random pixels, which compress badly. */
const noise = (width: number, height: number) =>
  sharp({
    create: { width, height, channels: 3, background: '#000', noise: { type: 'gaussian', mean: 128, sigma: 12 } },
  })

async function encoded(file: Uint8Array, use: PictureUse = 'picture') {
  const result = await encodePicture(file, use)
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.picture
}

const sizeOf = async ({ body }: PictureForm) => {
  const { format, width, height, pages = 1, exif, icc, xmp } = await sharp(body).metadata()
  return { format, width, height, pages, hasMore: [exif, icc, xmp].some((one) => one !== undefined) }
}

describe('encodePicture', () => {
  let photo: Buffer
  before(async () => {
    // On its side, as a telephone stores it, with a place and a colour profile.
    photo = await noise(1_000, 640)
      .withExif({ IFD3: { GPSLatitude: '48/1' } })
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer()
  })

  it('writes AVIF, WebP and JPEG of at most 60 kB, turned as the camera was held, without metadata', async () => {
    const { width, height, forms } = await encoded(photo)
    assert.deepEqual(
      forms.map(({ type }) => type),
      ['image/avif', 'image/webp', 'image/jpeg'],
    )
    assert.ok(forms.every(({ body }) => body.length <= maxFormBytes))
    const [avif, webp, jpeg] = await Promise.all(forms.map(sizeOf))
    assert.ok(width < height && width <= 1_200)
    assert.deepEqual(avif, { format: 'heif', width, height, pages: 1, hasMore: false })
    assert.deepEqual(webp, { format: 'webp', width, height, pages: 1, hasMore: false })
    assert.deepEqual([jpeg?.format, jpeg?.hasMore], ['jpeg', false])
  })

  it('keeps what is transparent, and then writes no JPEG', async () => {
    const drawing = await sharp({ create: { width: 300, height: 200, channels: 4, background: '#0000' } })
      .png()
      .toBuffer()
    const { width, height, forms } = await encoded(drawing, 'detail')
    assert.deepEqual([width, height, forms.map(({ type }) => type)], [300, 200, ['image/avif', 'image/webp']])
    assert.equal((await sharp(forms[1]?.body).metadata()).hasAlpha, true)
  })

  it('keeps the first frame of an animation', async () => {
    const frames = await Promise.all([1, 2, 3].map(() => noise(32, 32).png().toBuffer()))
    const moving = await sharp(frames, { join: { animated: true } })
      .webp()
      .toBuffer()
    assert.equal((await sharp(moving, { animated: true }).metadata()).pages, 3)
    const { height, forms } = await encoded(moving)
    assert.equal(height, 32)
    assert.equal((await sizeOf(forms[1] as PictureForm)).pages, 1)
  })

  it('refuses what is no raster picture, too many pixels, and a file that is cut off', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
    const gif = await noise(8, 8).gif().toBuffer()
    const bomb = await sharp({ create: { width: 7_000, height: 6_000, channels: 3, background: '#fff' } })
      .png()
      .toBuffer()
    for (const file of [
      Buffer.from(svg),
      gif,
      bomb,
      photo.subarray(0, 4_000),
      Buffer.from('%PDF-1.7'),
      Buffer.alloc(0),
    ]) {
      const result = await encodePicture(file, 'picture')
      assert.ok(!result.ok && result.reason !== '', file.subarray(0, 12).toString('latin1'))
    }
    assert.match(JSON.stringify(await encodePicture(bomb, 'picture')), /pixel limit/)
    assert.deepEqual(await encodePicture(new Uint8Array(20_000_001), 'picture'), {
      ok: false,
      reason: 'it has more than 20 MB',
    })
  })

  it('ends a decoder that takes too long', async () => {
    assert.deepEqual(await encodePicture(photo, 'picture', 1), { ok: false, reason: 'it cannot be decoded' })
  })

  it('rejects when its process cannot be started', async () => {
    const { execPath } = process
    process.execPath = '/nonexistent/node'
    try {
      await assert.rejects(encodePicture(new Uint8Array(1), 'picture', 100), { code: 'ENOENT' })
    } finally {
      process.execPath = execPath
    }
  })
})
