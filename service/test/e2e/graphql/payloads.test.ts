/** The payload of a mutation has what its step has changed, whatever its operation has read before (spec §4.9). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../../support/evidence.ts'
import { alice, graphqlOf, postGraphql } from '../../support/graphql/client.ts'
import { answered, lifeOf } from '../../support/graphql/life.ts'
import { hashOf } from '../../support/index/rows.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'

type Flagged = { errors: readonly object[]; product: { flagged: boolean; history: { totalCount: number } } | null }
type Accepted = { success: boolean; transfer: { product: { currentOwner: { address: string } } } | null }

describe('the payload of a mutation', () => {
  const world = useOpened(startWorld)

  it('has the owner that the step made, also for a key whose brands were compared with the product before', async () => {
    const graphql = await graphqlOf(world)
    const { register, offer, typedData } = lifeOf(graphql)
    const { text, hash } = newApiKey()
    keepSecret(text)
    await world.components.apiKeys.create({ hash, name: 'maison', scopes: ['read', 'write'], brands: ['Maison'] })
    const query = answered('acceptTransfer').replace('id status', 'id status product { currentOwner { address } }')
    const accept = async (tagId: string): Promise<Accepted> => {
      const { transfer } = await offer(await register(tagId))
      const { typedData: data } = await typedData({ action: 'ACCEPT', transferId: transfer?.id })
      const input = { transferId: transfer?.id, signature: await alice.signTypedData(data) }
      const response = await postGraphql(world.urls.graphql, text, { query, variables: { input } })
      const answer = (await response.json()) as { data: { acceptTransfer: Accepted } }
      return answer.data.acceptTransfer
    }
    // While the index is behind, as on a busy machine, the payload has no transfer.
    for (let tries = 1; ; tries += 1) {
      const { success, transfer } = await accept(`own-${tries}`)
      assert.ok(success)
      if (transfer === null) continue
      assert.equal(transfer.product.currentOwner.address, alice.address)
      break
    }
    await graphql.close()
  })

  it('has the history with its step, also behind another step of the same operation', async () => {
    const graphql = await graphqlOf(world)
    const { register } = lifeOf(graphql)
    const step = (name: string, reports: string) =>
      `${name}: flagProduct(input: { productId: $id, reports: [${reports}] }) { success errors { field message } product { flagged history { totalCount } } }`
    for (let tries = 1; ; tries += 1) {
      const id = await register(`twice-${tries}`)
      const binding = { kind: 'bindTag', tokenId: BigInt(id), tagHash: hashOf(tries) } as const
      assert.ok((await world.components.writer.write(binding, { idempotencyKey: `twice-${tries}` })).ok)
      const query = `mutation ($id: ID!) { ${step('first', 'LOST')} ${step('second', 'STOLEN')} }`
      const { first, second } = await graphql.ask<Record<'first' | 'second', Flagged>>(query, { id })
      assert.deepEqual([first.errors, second.errors], [[], []])
      if (first.product === null || second.product === null) continue
      const added = second.product.history.totalCount - first.product.history.totalCount
      assert.ok(added > 0, `${added} events by the second step`)
      break
    }
    await graphql.close()
  })
})
