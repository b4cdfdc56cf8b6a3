/** A small index for tests: a claimed product with metadata, transfers and a history, one minted elsewhere, one reported stolen. */
import { metadataHashOf } from '@touchstone/verdict'
import type { Database } from '../../../src/db/database.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import { bob, hashOf, insertAsset, insertEvent, insertOperation, insertTransfer, setCursor } from './rows.ts'

export const huge = 2n ** 256n - 1n
const body =
  '{"customFields":{"care":"dry\\u202eclean"},"description":"A\\u001b[31m watch","image":"https://x.example/a.png","manufactureDate":"2025-12-24","name":"Watch","origin":"CH"}'
const metadataHash = metadataHashOf(body)

export async function fillExample(database: Database): Promise<void> {
  await metadataStore(database).put({ body, hash: metadataHash })
  const whole = { metadataHash, tagHash: hashOf(9), tagId: 'TAG-1', name: 'Watch', brand: 'Acme', serial: 'S1' }
  const one = await insertAsset(database, {
    ...whole,
    tokenId: 1,
    state: 4,
    tapped: true,
    gtin: '09506000134352',
    createdAt: '2026-01-01T00:00:00.000001Z',
    updatedAt: '2026-03-01T00:00:00Z',
  })
  await insertAsset(database, { tokenId: huge, createdAt: '2026-01-02T00:00:00Z', owner: bob, tagHash: hashOf(8) })
  await insertAsset(database, {
    tokenId: 3,
    state: 5,
    flags: 2,
    brand: 'Acme',
    name: '50%_off\\',
    createdAt: '2026-01-03T00:00:00Z',
  })
  await insertTransfer(database, {
    id: '1-1',
    assetPk: one,
    status: 'CONFIRMED',
    settledTx: hashOf(5),
    messageHash: hashOf(6),
  })
  await insertTransfer(database, {
    id: '1-2',
    assetPk: one,
    initiatedAt: '2026-01-03T00:00:00Z',
    expiresAt: '2026-01-04T00:00:00Z',
  })
  await insertTransfer(database, {
    id: '1-3',
    assetPk: one,
    initiatedAt: '2026-01-05T00:00:00Z',
    expiresAt: '9999-01-01T00:00:00Z',
  })
  for (let block = 1; block <= 5; block += 1) await insertEvent(database, { tokenId: 1, block })
  await setCursor(database, { number: 77, at: '2026-01-06T00:00:00Z' })
  await insertOperation(database, hashOf(7))
  await database.query("insert into transfer_message (hash, body) values (decode($1, 'hex'), $2)", [
    hashOf(6).slice(2),
    'Yours\u001b[31m\u202e now',
  ])
}
