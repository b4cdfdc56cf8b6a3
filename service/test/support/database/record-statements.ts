/**
 * Is loaded into the test processes of `npm run test:citus`. Writes each statement that goes to the cluster, once, with the shortest values
 * that it came with, into a file of the process in the folder `TEST_CITUS_STATEMENTS`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'

export type Recorded = Readonly<{ text: string; values: readonly unknown[] }>

const folder = process.env['TEST_CITUS_STATEMENTS']
if (folder !== undefined && !process.execArgv.includes('--test')) {
  const seen = new Map<string, string>()
  // oxlint-disable-next-line typescript/unbound-method -- it is applied to its client below
  const send = pg.Client.prototype.query as (this: pg.Client, ...given: unknown[]) => unknown
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    const [first, second] = given
    // A statement with a limit of its own comes as one object.
    const { text, values } = (typeof first === 'object' ? first : { text: first, values: second }) as Partial<Recorded>
    if (typeof text === 'string' && Array.isArray(values)) record(text, values)
    return send.apply(this, given)
  } as typeof pg.Client.prototype.query

  const record = (text: string, values: readonly unknown[]): void => {
    const line = JSON.stringify({ text, values }, plainValue)
    if (isSimpler(line, seen.get(text))) seen.set(text, line)
  }
  process.on('exit', () => {
    if (seen.size > 0) writeFileSync(join(folder, `${process.pid}.jsonl`), [...seen.values()].join('\n'))
  })
}

/** Returns whether a line shows better which shards its statement asks. A list without keys asks all. */
export function isSimpler(line: string, known: string | undefined): boolean {
  if (known === undefined) return true
  const [empty, wasEmpty] = [line, known].map((one) => /\[\]|"\{\}"/.test(one))
  return empty === wasEmpty ? line.length < known.length : wasEmpty === true
}

/** Values as the driver would write them. */
function plainValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer')
    return `\\x${Buffer.from((value as unknown as { data: number[] }).data).toString('hex')}`
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value
}
