/** Registrations and the items of their tokens, as an index links them that is built anew. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import { registrationStore } from '../../../src/graphql/mutations/stores.ts'
import { historyStore } from '../../../src/index/history.ts'
import { rebuildIndex } from '../../../src/index/store.ts'
import { itemStore } from '../../../src/assets/items.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { alice, atHead, hash, indexerOver, operator, startIndexChain } from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'

for (const { name, open, skip } of testDatabases())
  describe(`a registration in ${name}`, { skip }, () => {
    const database = useOpened(open)
    const chain = useOpened(startIndexChain)

    it('leaves a token its item where it names another, which stays free, and one that has it already', async () => {
      const indexer = indexerOver(chain, database)
      indexer.start()
      const items = itemStore(database)
      const gtin = '09506000134352'
      const [other, same] = [10n ** 14n + 8n, 10n ** 14n + 9n]
      const register = async (tokenId: bigint, serial: string) =>
        assert.ok((await items.register({ tokenId, gtin, serial })).ok)
      await register(other, 'OTHER')
      await register(same, 'S9')
      for (const [id, serial] of [
        [other, 'S8'],
        [same, 'S9'],
      ] as const) {
        assert.ok(await chain.send(operator.address, 'mintWithId', [alice.address, id, hash(0)]))
        await atHead(indexer, chain)
        const [mint] = (await historyStore(database).of(id))?.rows ?? []
        const registration = { key: serial, requestHash: hash(1), tagId: `Bag ${serial}`, metadataHash: hash(0) }
        await registrationStore(database).add({ ...registration, gtin, serial })
        const operation = { key: `register:${serial}`, requestHash: hash(1), kind: 'mintWithId' } as const
        await operationStore(database).append({ ...operation, signer: operator.address, fromNonce: 8n }, () =>
          Promise.resolve({ txHash: mint?.transactionHash ?? hash(0), raw: '0x' }),
        )
      }
      await indexer.close()
      await rebuildIndex(database)
      await indexerOver(chain, database).catchUp()
      assert.deepEqual(
        await database.query(
          'select serial, token_id::bigint as id from registration where token_id is not null order by 1',
        ),
        [
          { serial: 'S8', id: other },
          { serial: 'S9', id: same },
        ],
      )
      const itemsOf = [await items.itemOfToken(other), await items.itemOfToken(same)]
      assert.deepEqual(itemsOf, [
        { gtin, serial: 'OTHER' },
        { gtin, serial: 'S9' },
      ])
      assert.equal(await items.tokenOfItem({ gtin, serial: 'S8' }), null)
      assert.equal(await items.tokenOfItem({ gtin, serial: 'S9' }), same)
    })
  })
