/** The steps of an imported row on chain (spec §3, BOUND and ACTIVATED), each under a key made of UID and epoch. */
import { notMined, refused, type ImportChain, type Plan, type Stop } from './tag-import-plan.ts'

/** What was done, `null` when it had been done before, or why the row ends here. Throws CHAIN_UNAVAILABLE. */
type Step = (chain: ImportChain, plan: Plan, tokenId: bigint) => Promise<string | null | Stop>

export const bindTag: Step = async (chain, { row, name }, tokenId) => {
  const tagHash = chain.tagHash(row.uid)
  const result = await written(chain, { kind: 'bindTag', tokenId, tagHash }, `tag-${name}-bind-${tokenId}`)
  if (result.ok) return endOf(result, 'bound')
  const bound = await chain.reader.readByTag(tagHash)
  return bound.tokenId === tokenId ? null : refused(result.message)
}

export const activateAsset: Step = async (chain, { name }, tokenId) => {
  const result = await written(chain, { kind: 'activate', tokenId }, `tag-${name}-activate-${tokenId}`)
  if (result.ok) return endOf(result, 'activated')
  const { asset } = await chain.reader.read(tokenId)
  return asset.record.state > 2 ? null : refused(result.message)
}

type Write = ImportChain['writer']['write']
type Result = Awaited<ReturnType<Write>>

function endOf(result: Extract<Result, { ok: true }>, done: string): string | null | Stop {
  if (result.status !== 'CONFIRMED') return notMined
  return result.repeated ? null : done
}

/** A key under which a transaction reverted or was superseded stays used; the next one tries again. */
async function written({ writer }: ImportChain, request: Parameters<Write>[0], key: string): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const result = await writer.write(request, { idempotencyKey: attempt === 1 ? key : `${key}-${attempt}` })
    const isUsedUp = !result.ok && (result.code === 'REVERTED' || result.code === 'SUPERSEDED')
    if (!isUsedUp || attempt === 5) return result
  }
}
