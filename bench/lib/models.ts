/** The models that products of benchmarks are of. Products of one model share their metadata, as a manufacturer's do. */
import { canonicalMetadata } from '../../service/src/assets/metadata.ts'

/** `hash` without 0x. */
export type Model = { readonly hash: string; readonly body: string; readonly name: string; readonly brand: string }

const brands = 200

export function modelOf(index: number): Model {
  const name = `Field jacket ${index.toString(36).padStart(4, '0')}`
  const brand = `Brand ${index % brands}`
  const description = `Waxed cotton, taped seams, model ${index} of the ${2020 + (index % 6)} collection. Repairs are free for ten years.`
  const metadata = canonicalMetadata({ name, brand, description, origin: 'PT', sku: `FJ-${index}` })
  if (!metadata.ok) throw new Error(metadata.message)
  return { hash: metadata.hash.slice(2), body: metadata.body, name, brand }
}
