/**
 * Servers of one database: a primary and its standbys, of which one takes writes. A URL lists them as libpq does. The server that takes
 * writes is looked for at first and after each failure of it.
 */
import pg from 'pg'
import { withDeadline } from '../../lib/async/deadline.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { databaseUnavailable } from '../../lib/errors.ts'
import { parseServers } from './server-list.ts'

export type Servers = Readonly<{
  /** Returns the URL of the server that takes writes. Throws DATABASE_UNAVAILABLE while none does. */
  writable: () => Promise<string>
  /** Notes a failure of a server: the next `writable` looks at all of them. */
  doubt: (url: string) => void
}>

/** Throws a RangeError for a text that `parseServers` does not accept. */
export function createServers(url: string): Servers {
  const urls = parseServers(url)
  if (urls === null) throw new RangeError('This is no URL of PostgreSQL.')
  return urls.length === 1 ? { writable: async () => url, doubt: () => {} } : searchServers(urls)
}

/** The first server found waits so long for the answers of the others. */
const othersMs = 500
/** Failed searches are at least so far apart. */
const searchEachMs = 250

function searchServers(urls: readonly string[]): Servers {
  let known: string | undefined
  /** Newest timeline that this process has seen. A promotion begins a new one. */
  let newest = 0
  let failure: { readonly at: number; readonly error: unknown } | undefined

  const search = singleFlight(async (): Promise<string> => {
    if (failure !== undefined && performance.now() - failure.at < searchEachMs) throw failure.error
    try {
      const looks = urls.map(lookAt)
      const all: Look[] = []
      for (const look of looks) look.then((found) => all.push(found)).catch(() => {})
      await Promise.any(looks)
      await withDeadline(Promise.allSettled(looks), othersMs, { onTimeout: () => [] })
      // A former primary that came back takes writes too, on an older timeline: what is written there would be lost.
      const best = all.reduce((one, other) => (other.timeline > one.timeline ? other : one))
      if (best.timeline < newest) throw new Error('Only a former primary takes writes.')
      newest = best.timeline
      known = best.url
      failure = undefined
      return best.url
    } catch (error) {
      failure = { at: performance.now(), error: databaseUnavailable(error) }
      throw failure.error
    }
  })

  return {
    writable: async () => known ?? search(),
    doubt: (url) => {
      if (known === url) known = undefined
    },
  }
}

type Look = Readonly<{ url: string; timeline: number }>

/** Names the timeline where the server takes writes; a standby has none. */
const lookStatement = `select case when current_setting('transaction_read_only') = 'off' then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`

/** Rejects for a server that does not answer, and for one that takes no writes. */
async function lookAt(url: string): Promise<Look> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
    application_name: 'touchstone',
  })
  client.on('error', () => {}) // the query fails as well
  try {
    await client.connect()
    const { rows } = await client.query<{ timeline: string | null }>(lookStatement)
    const timeline = rows[0]?.timeline ?? null
    if (timeline === null) throw new Error('The server takes no writes.')
    return { url, timeline: Number.parseInt(timeline, 16) }
  } finally {
    client.end().catch(() => {})
  }
}
