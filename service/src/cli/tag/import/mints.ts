/**
 * Minting of an import (spec §3, MINTED), up to 200 tokens per transaction. The rows of a transaction are stored before it is signed
 * (`imports/` of the data folder), so that after an interruption or a late transaction another run assigns the tokens and mints nothing
 * twice.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import type { Components } from '../../../app/components.ts'
import { writePrivateFile } from '../../../lib/sealed-file.ts'
import { CommandError } from '../../session/session.ts'

/** `name` identifies a chip and its epoch. */
type MintRow = Readonly<{ name: string; metadataHash: Hex }>
export type Mints = Readonly<{
  /** Returns the token that was minted for a row which is not registered yet; `pending` when its transaction is not mined. */
  tokenOf: (name: string) => bigint | 'pending' | undefined
  /** Mints one token for each row. Returns null, or why nothing was minted. `tokenOf` returns them afterwards. */
  mint: (rows: readonly MintRow[], to: Hex) => Promise<string | null>
  /** Reports a registered row. A group is deleted when all its rows are registered. */
  registered: (name: string) => Promise<void>
}>

type Group = Readonly<{ key: string; to: Hex; rows: readonly MintRow[] }>

/** Opens the groups that an earlier import left. `isRegistered` returns whether a row has its token in the store. */
export async function openMints({
  dataDir,
  writer,
  isRegistered,
}: {
  dataDir: string
  writer: Pick<Components['writer'], 'write'>
  isRegistered: (name: string) => Promise<boolean>
}): Promise<Mints> {
  const folder = join(dataDir, 'imports')
  const tokens = new Map<string, bigint | 'pending'>()
  /** A group whose transaction has an unknown outcome. A retry must be the same group. */
  let unanswered: Group | undefined
  const open = new Map<string, { group: Group; waiting: Set<string> }>()
  for (const group of await readGroups(folder)) {
    const waiting = new Set<string>()
    for (const { name } of group.rows) if (!(await isRegistered(name))) waiting.add(name)
    if (waiting.size === 0) await forget(group)
    else await send(group, waiting)
  }

  async function send(group: Group, waiting: Set<string>): Promise<string | null> {
    const { key, to, rows } = group
    const metadataHashes = rows.map(({ metadataHash }) => metadataHash)
    const result = await writer.write({ kind: 'mintBatch', to, metadataHashes }, { idempotencyKey: key })
    // A writer that has no key does not check whether it signed for this group before.
    if (!result.ok && result.code !== 'OPERATOR_KEY_MISSING') {
      // Refused or reverted: nothing was minted and nothing will be under this key.
      await forget(group)
      return result.message
    }
    const minted = result.ok && result.status === 'CONFIRMED' ? result.tokenIds : []
    for (const [index, { name }] of rows.entries()) if (waiting.has(name)) tokens.set(name, minted[index] ?? 'pending')
    open.set(key, { group, waiting })
    return result.ok ? null : result.message
  }

  async function forget({ key }: Group): Promise<void> {
    open.delete(key)
    await rm(join(folder, `${key}.json`), { force: true })
  }

  return {
    tokenOf: (name) => tokens.get(name),
    async mint(rows, to) {
      const isSame = unanswered !== undefined && namesOf(unanswered.rows) === namesOf(rows)
      const group = isSame && unanswered !== undefined ? unanswered : { key: `import-mint-${randomUUID()}`, to, rows }
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writePrivateFile(join(folder, `${group.key}.json`), JSON.stringify(group))
      unanswered = group
      const reason = await send(group, new Set(rows.map(({ name }) => name)))
      unanswered = undefined
      return reason
    },
    async registered(name) {
      for (const { group, waiting } of open.values())
        if (waiting.delete(name) && waiting.size === 0) await forget(group)
    },
  }
}

function namesOf(rows: readonly MintRow[]): string {
  return rows.map(({ name }) => name).join(' ')
}

async function readGroups(folder: string): Promise<Group[]> {
  const names = await readdir(folder).catch(() => [])
  const files = names.filter((name) => /^import-mint-[\w-]+\.json$/.test(name))
  return Promise.all(
    files.map(async (name) => {
      try {
        return JSON.parse(await readFile(join(folder, name), 'utf8')) as Group
      } catch {
        throw new CommandError(`${join(folder, name)} is damaged: without it tokens may be minted twice. Restore it.`)
      }
    }),
  )
}
