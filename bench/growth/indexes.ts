/** Indexes and keys of tables that are filled in bulk are made anew afterwards. That costs a fraction of keeping them up row by row. */
import type { Database } from '../../service/src/db/database.ts'

/** Those that a foreign key rests on stay, and those that rows of the load are found by. */
const staying = ['asset_pkey', 'asset_token_id_key']

/** Two at a time. */
export async function withoutIndexes(
  database: Database,
  tables: readonly string[],
  load: () => Promise<void>,
): Promise<void> {
  const found = await database.query<Found>(foundStatement, [tables, staying])
  for (const { name, at, constraint } of found)
    await database.exec(constraint === null ? `drop index ${name}` : `alter table ${at} drop constraint ${name}`)
  await load()
  const missing = [...found]
  const make = async () => {
    for (let one = missing.pop(); one !== undefined; one = missing.pop()) {
      const { name, at, constraint, text } = one
      const statement = constraint === null ? text : `alter table ${at} add constraint ${name} ${constraint}`
      await database.exec(`set maintenance_work_mem = '1GB'; ${statement}; reset maintenance_work_mem`)
    }
  }
  await Promise.all([make(), make()])
}

type Found = { readonly name: string; readonly at: string; readonly text: string; readonly constraint: string | null }

/** The smallest first, so that the largest, which are made first, do not end last. */
const foundStatement = `select i.indexrelid::regclass::text as name, i.indrelid::regclass::text as at, pg_get_indexdef(i.indexrelid) as text,
    pg_get_constraintdef(c.oid) as constraint
  from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
  where i.indrelid = any (select name::regclass from unnest($1::text[]) name) and i.indexrelid::regclass::text <> all ($2::text[])
  order by i.indrelid = 'asset'::regclass, i.indexrelid::regclass::text like '%name'`
