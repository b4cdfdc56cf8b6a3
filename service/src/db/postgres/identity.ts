/** The identity of a database among all servers, which its standbys share. Two URLs may be meant to name one database. */
import type { SqlQuery } from '../columns.ts'
import { isMissingRight } from '../errors.ts'

/** A URL leads to another database than DATABASE_URL. */
export class OtherDatabaseError extends Error {
  constructor(setting: 'DATABASE_DIRECT_URL' | 'DATABASE_READ_URL') {
    super(`${setting} names another database than DATABASE_URL: correct one of them.`)
    this.name = 'OtherDatabaseError'
  }
}

const nameStatement = `select (select system_identifier from pg_control_system())::text || ' ' || oid::text as name from pg_database where datname = current_database()`

/** Returns whether both lead to one database, or to its standby. Servers that keep their identity secret count as one. */
export async function isOneDatabase(one: SqlQuery, other: SqlQuery): Promise<boolean> {
  const [here, there] = await Promise.all([nameOf(one), nameOf(other)])
  return here === null || there === null || here === there
}

async function nameOf(query: SqlQuery): Promise<string | null> {
  try {
    return (await query<{ name: string }>(nameStatement))[0]?.name ?? null
  } catch (error) {
    if (isMissingRight(error)) return null
    throw error
  }
}
