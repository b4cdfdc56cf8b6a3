/**
 * The models (GTIN) that a key with brands may set for its products. The page and the passport of a model show what its newest items have
 * alike, so that items of another brand would change them.
 */
import { permits } from '../../access/rights.ts'
import type { ClassStore } from '../../index/queries/classes.ts'
import type { GraphqlContext } from '../context.ts'
import type { InputError } from './inputs.ts'

export type ModelDeps = Readonly<{ classes: ClassStore }>

/** Items of a model whose brands are compared. */
const mostItems = 100

/** Returns why a key may not add an item to a model, which has items of other brands only. Returns null where it may. */
export async function modelError(
  { classes }: ModelDeps,
  gtin: string | null | undefined,
  { key: { brands }, loaders }: GraphqlContext,
): Promise<InputError | null> {
  if (brands === null || gtin === null || gtin === undefined) return null
  const items = (await classes.itemsOfClass(gtin)).slice(0, mostItems)
  const products = await Promise.all(items.map(({ tokenId }) => loaders.productByToken.load(tokenId)))
  if (items.length === 0 || products.some((product) => permits(brands, product))) return null
  const message = `Products of another brand have this GTIN. This API key registers products of ${brands.join(', ')} only.`
  return { field: 'gtin', message }
}
