/** The wall clock of one instance is ten minutes ahead, then ten minutes behind, then right again (`clock-hook.ts` says how). */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { apiKeyStore, newApiKey } from '../../../service/src/access/api-keys.ts'
import type { Fault } from './fault.ts'
import type { Fleet } from '../fleet.ts'

const stepMs = 600_000
const hook = new URL('clock-hook.ts', import.meta.url).href
const fileIn = ({ folder }: Fleet) => join(folder, 'clock')

export const clockStep: Fault = {
  about: 'the wall clock of one instance steps ten minutes ahead, then ten minutes behind; blocks keep their time',
  wishes: (fleet) => ({ b: { nodeFlags: ['--import', hook], env: { CHAOS_CLOCK_FILE: fileIn(fleet) } } }),
  async strike(fleet, ms, record) {
    const [, stepped] = fleet.instances
    if (stepped === undefined) return
    const step = async (offset: number) => {
      await writeFile(fileIn(fleet), String(offset))
      stepped.signal('SIGUSR2')
      await delay(100)
    }
    const keys = apiKeyStore(fleet.database)
    const { text, hash } = newApiKey()
    const id = await keys.create({ hash, name: 'clock', scopes: ['read'] })
    const passes = async () => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${text}` }
      const asked = fetch(`${stepped.urls().graphql}/graphql`, {
        method: 'POST',
        headers,
        body: '{"query":"{ __typename }"}',
      })
      return (await asked).status !== 401
    }
    await step(stepMs)
    await delay(ms / 2)
    if (!(await passes())) record.broke('a new API key does not pass while the clock is ahead')
    await step(-stepMs)
    await keys.revoke(id)
    await delay(1_200)
    if (await passes()) record.broke('a revoked API key passes more than a second later, after the clock stepped back')
    await delay(Math.max(0, ms / 2 - 1_300))
    await step(0)
  },
}
