/**
 * `node scripts/demo-pictures.ts` draws the pictures of the demonstration's products. It reads the SVG files in their folder and writes the
 * forms that the service stores. Run it after a change of a drawing; the changed files are new hashes in the product details.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import sharp from 'sharp'
import { encodePicture } from '../service/src/assets/pictures/encode.ts'
import { demoPictures } from '../service/src/cli/dev/details.ts'

const sizes: Record<string, { readonly width: number; readonly height: number }> = {}
for (const file of (await readdir(demoPictures)).filter((name) => name.endsWith('.svg'))) {
  const name = file.slice(0, -'.svg'.length)
  const isDetail = name.includes('-') && !name.endsWith('-drawing')
  const drawn = sharp(await readFile(new URL(file, demoPictures)), { density: isDetail ? 240 : 180 }).png()
  const encoded = await encodePicture(await drawn.toBuffer(), isDetail ? 'detail' : 'picture')
  if (!encoded.ok) throw new Error(`${file}: ${encoded.reason}`)
  const { width, height, forms } = encoded.picture
  for (const { type, body } of forms)
    await writeFile(new URL(`${name}.${type.slice('image/'.length)}`, demoPictures), body)
  sizes[name] = { width, height }
  console.log(name, width, height, forms.map(({ type, body }) => `${type} ${body.length}`).join(', '))
}
await writeFile(new URL('sizes.json', demoPictures), `${JSON.stringify(sizes, null, 2)}\n`)
