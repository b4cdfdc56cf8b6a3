/**
 * A connection to PostgreSQL outside the pool, for what lives as long as its session: LISTEN and session locks. It is asked at regular
 * times whether it still answers, because a network that swallows packets ends no connection.
 */
import { Socket } from 'node:net'
import pg from 'pg'

export type OwnConnection = {
  readonly query: <Row>(text: string, values?: readonly unknown[]) => Promise<Row[]>
  /** Resolves when the connection has ended or has left a question unanswered; nothing can be asked from then on. */
  readonly lost: Promise<void>
  readonly end: () => Promise<void>
}

/** Any answer within this time, in ms, else the connection counts as lost. */
const answerWithinMs = 2_000

/** `checkMs` is the time between two checks. It throws what the driver throws when PostgreSQL cannot be reached. */
export async function openConnection({
  url,
  checkMs,
  onNotice,
}: {
  readonly url: string
  readonly checkMs: number
  readonly onNotice?: () => void
}): Promise<OwnConnection> {
  const socket = new Socket()
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 3_000,
    query_timeout: answerWithinMs,
    application_name: 'touchstone',
    stream: () => socket,
  })
  const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
  const drop = () => {
    socket.destroy()
    lose()
  }
  client.on('error', drop)
  client.on('end', drop)
  if (onNotice !== undefined) client.on('notification', onNotice)
  let last: Promise<unknown> = Promise.resolve() // one question at a time: checks come between those of the user
  const query = <Row>(text: string, values: readonly unknown[] = []) => {
    const asked = last.then(async () => (await client.query(text, [...values])).rows as Row[])
    last = asked.catch(() => {})
    return asked
  }
  try {
    await client.connect()
    await query(noticeVanishedClients)
  } catch (error) {
    drop()
    throw error
  }
  let asking = false
  const checks = setInterval(() => {
    if (asking) return
    asking = true
    void query('select 1').then(() => (asking = false), drop)
  }, checkMs)
  void lost.then(() => clearInterval(checks))
  return {
    query,
    lost,
    end: async () => {
      clearInterval(checks)
      client.end().catch(() => {})
      const patience = setTimeout(drop, 1_000)
      await lost
      clearTimeout(patience)
    },
  }
}

/** The server ends the session of a machine that vanished after some 11 s, not hours: a lock of the dead must not outlive them long. */
const noticeVanishedClients = `select set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
  set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '11000', false)`
