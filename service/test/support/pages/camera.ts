/** A camera that shows one code to the pages of a test. */
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { markupOf } from '../../../src/pages/html.ts'
import { qrCode } from '../../../src/pages/qr.ts'

/** Chromium's flags for a camera that shows a test picture and needs no permission. */
export const testCamera = ['--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream']

/** Chromium's flags for a camera that plays the file `video`. The file is read when a page opens the camera. */
export const cameraFlags = (video: string) => [...testCamera, `--use-file-for-fake-video-capture=${video}`]

/** A picture of a QR code, with a side of 600 pixels. */
export const pictureOf = (text: string) =>
  sharp(Buffer.from(markupOf(qrCode(text, 'x')))).resize(600, 600, { kernel: 'nearest' })

/** Chooses a picture in the scanner of the start page, once its script is there: an earlier choice is lost. */
export async function choosePicture(page: Page, picture: ReturnType<typeof pictureOf>): Promise<void> {
  const buffer = await picture.png().toBuffer()
  await page.locator('[data-scan]').waitFor()
  await page.locator('#scan-picture').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer })
}

/** One frame of a picture as YUV4MPEG2, which Chromium plays as its camera. */
export async function videoOf(picture: Buffer): Promise<Buffer> {
  const [width, height] = [800, 600]
  const luma = await sharp(picture)
    .resize(500, 500, { kernel: 'nearest', fit: 'contain', background: '#fff' })
    .extend({ top: 50, bottom: 50, left: 150, right: 150, background: '#fff' })
    .flatten({ background: '#fff' })
    .greyscale()
    .raw()
    .toBuffer()
  const head = Buffer.from(`YUV4MPEG2 W${width} H${height} F10:1 Ip A1:1 C420jpeg\nFRAME\n`)
  return Buffer.concat([head, luma, Buffer.alloc((width * height) / 2, 128)])
}
