/** Product details of the demonstration, with pictures that the project drew itself (scripts/demo-pictures.ts). */
import { existsSync, readFileSync } from 'node:fs'
import { canonicalDetails } from '../../assets/metadata.ts'
import type { MetadataStore } from '../../assets/metadata-store.ts'
import { type PictureType, pictureTypes } from '../../assets/pictures/limits.ts'
import type { PictureStore, StoredPicture } from '../../assets/pictures/store.ts'

export const demoPictures = new URL('pictures/', import.meta.url)

export type DemoModel = 'satchel' | 'jacket'
export type DetailsStores = {
  readonly metadata: Pick<MetadataStore, 'put'>
  readonly pictures: Pick<PictureStore, 'put'>
}

/** Stores the details of a model and their pictures, and returns the hash of the details. */
export async function putDemoDetails({ metadata, pictures }: DetailsStores, model: DemoModel): Promise<string> {
  const sizes = JSON.parse(readFileSync(new URL('sizes.json', demoPictures), 'utf8')) as Record<
    string,
    { readonly width: number; readonly height: number }
  >
  async function picture(name: string, alt: string): Promise<StoredPicture & { readonly alt: string }> {
    const size = sizes[name]
    if (size === undefined) throw new Error(`The demonstration has no picture ${name}.`)
    const forms = pictureTypes.flatMap((type) => formOf(name, type))
    return { ...(await pictures.put({ ...size, forms })), alt }
  }
  const canonical = canonicalDetails(await models[model](picture))
  if (!canonical.ok) throw new Error(canonical.message)
  await metadata.put(canonical)
  return canonical.hash
}

function formOf(name: string, type: PictureType): { type: PictureType; body: Uint8Array }[] {
  const file = new URL(`${name}.${type.slice('image/'.length)}`, demoPictures)
  return existsSync(file) ? [{ type, body: new Uint8Array(readFileSync(file)) }] : []
}

type Picture = (name: string, alt: string) => Promise<object>

const models: Readonly<Record<DemoModel, (picture: Picture) => Promise<object>>> = {
  satchel: async (picture) => ({
    kind: 'bag',
    language: 'en',
    gtin: '09520003000001',
    model: { name: 'Satchel No. 7, cognac', number: 'MO-S7-COG' },
    picture: await picture('satchel', 'A cognac satchel with one handle, a flap and a brass turn-lock.'),
    drawing: await picture('satchel-drawing', 'The satchel as a line drawing.'),
    features: [
      {
        title: 'Slanted stitch',
        text: 'Every stitch leans to the right, nine to the inch, and the thread is waxed linen.',
        picture: await picture('satchel-stitch', 'Light stitches in brown leather, each leaning to the right.'),
        x: 77,
        y: 64,
      },
      {
        title: 'Turn-lock with a 7',
        text: 'Solid brass. The 7 is engraved, so that a fingernail feels it.',
        picture: await picture('satchel-lock', 'A brass turn-lock with a 7 engraved in its bar.'),
        x: 58,
        y: 73,
      },
      {
        title: 'Number under the flap',
        text: 'Hot-stamped, and the same as the serial number on this page.',
        picture: await picture('satchel-number', 'A stamped number between four rows of stitches.'),
        x: 27,
        y: 73,
      },
    ],
    care: ['Wipe it with a soft, dry cloth.', 'Oil the leather twice a year.', 'Keep it away from heat.'],
    repair: { text: 'Every shop of the house resews a seam and replaces straps, locks and corners.' },
    recycling: {
      text: 'Give it back to a shop of the house. Lock and rings are unscrewed, and the leather is used again.',
    },
    materials: [
      { name: 'Vegetable-tanned calf leather', percent: '86', country: 'FR' },
      { name: 'Brass', percent: '11' },
      { name: 'Linen', percent: '3' },
    ],
  }),
  jacket: async (picture) => ({
    kind: 'jacket',
    language: 'en',
    gtin: '09520004000017',
    model: { name: 'Terra Rain Jacket, ochre', number: 'NV-TRJ-M' },
    picture: await picture('jacket', 'An ochre rain jacket with a graphite yoke and a hood.'),
    drawing: await picture('jacket-drawing', 'The jacket as a line drawing.'),
    features: [
      {
        title: 'Zip with a long puller',
        text: 'The main zip runs under a graphite flap, and its puller is cast metal with two ridges.',
        picture: await picture('jacket-zip', 'A cast zip puller with two ridges.'),
        x: 57,
        y: 43,
      },
      {
        title: 'Three rows on the hood',
        text: 'The peak of the hood is stiff and stitched in three even rows.',
        picture: await picture('jacket-hood', 'The edge of a hood with three rows of stitches.'),
        x: 50,
        y: 11,
      },
      {
        title: 'Woven number at the hem',
        text: 'Peak mark and number, the same as the serial number on this page.',
        picture: await picture('jacket-label', 'A woven label with a peak mark and a number.'),
        x: 70,
        y: 83,
      },
    ],
    care: ['Wash it at 30 °C with liquid soap.', 'Dry it on a hanger.', 'Proof it again when water soaks in.'],
    repair: { text: 'Every seam can be opened and closed again. The workshop sends zips and patches.' },
    recycling: { text: 'One fibre throughout: cut out zip and label, and put it into the box at any shop.' },
    materials: [
      { name: 'Nylon', percent: '92', recycledPercent: '100', country: 'LT' },
      { name: 'Polyurethane', percent: '8' },
    ],
  }),
}
