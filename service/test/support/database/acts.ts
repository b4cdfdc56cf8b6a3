/**
 * A process for tests. It makes API keys in the database of its argument until it is killed, and prints the id of each once it is
 * committed.
 */
import { apiKeyStore, newApiKey } from '../../../src/access/api-keys.ts'
import { openDatabase } from '../../../src/db/database.ts'

const database = await openDatabase({ url: process.argv[2] ?? '', poolSize: 4, statementTimeoutMs: 60_000 })
const keys = apiKeyStore(database)

async function act(): Promise<never> {
  for (;;) {
    const { hash } = newApiKey()
    process.stdout.write(`${await keys.create({ hash, name: 'an act', scopes: ['read'] })}\n`)
  }
}

await Promise.all([act(), act(), act(), act()])
