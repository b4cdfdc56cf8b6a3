/**
 * Settings of PostgreSQL that change what a statement returns, or how it fails. A connection begins with the right ones, whatever the role
 * or the database has. A pooler rejects that, so that they are checked when the database is opened.
 */
import pg from 'pg'
import type { SqlQuery } from '../columns.ts'

/** A setting or the encoding of the database makes answers wrong. `remedy` mends it. */
export class UnfitDatabaseError extends Error {
  readonly what: string
  readonly remedy: string

  constructor(what: string, remedy: string) {
    super(`${what} ${remedy}`)
    this.name = 'UnfitDatabaseError'
    this.what = what
    this.remedy = remedy
  }
}

/** DateStyle has an order of day and month behind the comma, which ISO 8601 does not use. */
const pinned = {
  bytea_output: 'hex',
  DateStyle: 'ISO',
  default_transaction_isolation: 'read committed',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  gin_fuzzy_search_limit: '0',
}

const readOnly = 'default_transaction_read_only'
const needed: Readonly<Record<string, string>> = { server_encoding: 'UTF8', ...pinned, [readOnly]: 'off' }

/** A client whose connection begins with these settings. Options of a URL, and PGOPTIONS, stay in force beside them. */
export class PinnedClient extends pg.Client {
  getStartupConf(): Record<string, string> {
    const inherited = pg.Client.prototype as unknown as Pick<PinnedClient, 'getStartupConf'>
    return { ...inherited.getStartupConf.call(this), ...pinned }
  }
}

/** `place` is empty, or a worker of a cluster. */
type Look = Readonly<{ settings: Record<string, string>; name: string; target: string; place: string }>

/** A standby takes no writes in any case. */
const lookStatement = `select json_object_agg(name, split_part(current_setting(name), ',', 1)) as settings,
  current_database() as name, format('role %I in database %I', current_user, current_database()) as target, '' as place
  from unnest('{${Object.keys(needed).join()}}'::text[]) name where name <> '${readOnly}' or not pg_is_in_recovery()`

const workersStatement = `select l.settings, l.name, l.target, format(' at %s:%s', w.nodename, w.nodeport) as place
  from run_command_on_workers($1) w, json_to_record(w.result::json) l(settings json, name text, target text) where w.success`

/** Throws UnfitDatabaseError, also for a worker of a Citus cluster: it runs statements by settings of its own. */
export async function assertFit(query: SqlQuery, dialect: 'postgres' | 'citus'): Promise<void> {
  const looks = await query<Look>(lookStatement)
  if (dialect === 'citus')
    looks.push(...(await query<Look>(workersStatement, [`select row_to_json(look) from (${lookStatement}) look`])))
  for (const look of looks)
    for (const [setting, value] of Object.entries(look.settings))
      if (value !== needed[setting]) throw unfit(look, setting, value)
}

function unfit({ name, target, place }: Look, setting: string, value: string): UnfitDatabaseError {
  const wanted = needed[setting]
  if (setting === 'server_encoding')
    return new UnfitDatabaseError(
      `The database ${name}${place} has the encoding ${value}, and needs ${wanted}.`,
      `Make another one with createdb -E ${wanted} -T template0, and move the data there.`,
    )
  const change = `alter ${target} set ${setting} = '${wanted}'`
  if (setting === readOnly)
    return new UnfitDatabaseError(
      `The database ${name}${place} takes no writes, because ${setting} is ${value}.`,
      `Run set ${setting} = off; ${change}, and let a pooler connect again.`,
    )
  return new UnfitDatabaseError(
    `PostgreSQL${place} has ${setting} = '${value}', and needs '${wanted}'.`,
    `Run ${change}, and let a pooler connect again.`,
  )
}
