/** The chips of `tag write --from`. They are the rows of a file still to be written; the report lists the written ones. */
import type { Session } from '../../session/session.ts'
import { openReport } from '../../session/files.ts'
import { CommandError } from '../../session/output.ts'
import { prepareChips } from '../prepare.ts'
import type { AddressOptions } from '../template.ts'

export type ChipList = Awaited<ReturnType<typeof openChipList>>

const columns = ['line', 'uid', 'batch', 'gtin', 'serial', 'counter', 'url'] as const

/**
 * Opens the list. A chip is written when the store has it with the counter that was read at the end, so that the report is right after a
 * power cut too. Throws `CommandError` with the wrong rows.
 */
export async function openChipList(
  session: Session,
  path: string,
  options: Pick<AddressOptions, 'url' | 'host'> & { readonly batch: string },
) {
  const { store } = session
  const chips = new Map((await prepareChips(session, path, options)).map((chip) => [chip.row.uidText, chip]))
  const done = new Set<string>()
  const report = `${path}.written.csv`
  const lineOf = (uid: string, counter: number) => {
    const { row, batch, template } = chips.get(uid) ?? missing(uid)
    const { gtin = '', serial = '' } = row.item ?? {}
    return [row.line, uid, batch.id, gtin, serial, counter, template.url]
  }
  const lines: ReturnType<typeof lineOf>[] = []
  for (const [uid, { row, batch }] of chips) {
    if (batch.id !== options.batch)
      throw new CommandError(
        `Line ${row.line} is of batch ${batch.id}: write its chips with --batch ${batch.id} and a file of their own.`,
      )
    const known = await store.tags.tagOfUid(row.uid)
    if (known?.batchId !== batch.id || known.epoch !== batch.epoch || known.baselineCounter === null) continue
    done.add(uid)
    lines.push(lineOf(uid, known.baselineCounter))
  }
  const { write, close } = await openReport(report, columns, lines)
  return {
    size: chips.size,
    /** Rows that are not written yet. */
    left: () => chips.size - done.size,
    /** Returns undefined for a chip that is not in the file. `uid` has 14 upper-case hex digits. */
    templateOf: (uid: string) => chips.get(uid)?.template,
    isWritten: (uid: string) => done.has(uid),
    /** Throws `CommandError` where the report cannot be written. */
    written: async (uid: string, counter: number) => {
      done.add(uid)
      const fault = await write([lineOf(uid, counter)])
      if (fault !== null)
        throw new CommandError(
          `The report ${report} cannot be written (${fault}). Its chips are registered: run this again for a complete one.`,
        )
    },
    report,
    close,
  }
}

function missing(uid: string): never {
  throw new RangeError(`The chip ${uid} is not in the list.`)
}
