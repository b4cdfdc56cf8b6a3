/** `touchstone tag write` with a closed batch, a chip of another batch, or a report that cannot be written (spec §4.4). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import { sessionBase, type Session } from '../../../src/cli/session/session.ts'
import { openChipList } from '../../../src/cli/tag/write/chip-list.ts'
import { writeTags } from '../../../src/cli/tag/write/write.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { createKeyRing } from '../../../src/tap/keys/batch.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { createChip, type Chip } from '../../support/tap/chip.ts'
import { readerWith } from '../../support/tap/reader.ts'
import { newUid } from '../../support/tap/tags.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'

const zeros = '0'.repeat(32)
const host = 'v.example'

describe('touchstone tag write', () => {
  const world = useOpened(startWorld)
  const run = commandsOf(world)
  let session: Session
  before(async () => {
    for (const id of ['b', 'other', 'closing', 'changing', 'later --epoch 258']) await run(`tag batch create ${id}`)
    session = sessionWith(() => {})
  })

  const path = (name: string) => join(world.settings.DATA_DIR, name)
  const journals = () => readdir(path('keys/chips')).catch(() => [])
  const isBlank = (chip: Chip) => chip.keys().every((key) => key === zeros)

  /** A session that passes its lines to `onLine`. A result of true ends the command. */
  function sessionWith(onLine: (line: string) => boolean | void, tags = world.components.tags): Session {
    const stopped = new AbortController()
    const say = (line: string) => void (onLine(line) === true && stopped.abort())
    return {
      ...sessionBase(readConfig(world.settings), world.url, {
        store: { ...world.components, tags },
        chain: world.components,
      }),
      io: { out: say, err: say, cwd: '/', signal: stopped.signal },
    }
  }

  async function chipsOfFile(name: string, count: number) {
    const chips = Array.from({ length: count }, newUid).map((uid) => ({
      uid,
      name: toHex(uid),
      chip: createChip({ uid }),
    }))
    await writeFile(path(name), `uid\n${chips.map((chip) => chip.name).join('\n')}\n`)
    return chips
  }
  const linesOf = async (name: string) => (await readFile(path(`${name}.written.csv`), 'utf8')).trim().split('\n')

  it('leaves the next chip blank once the batch is closed', async () => {
    const [first, next] = [createChip({ uid: newUid() }), createChip({ uid: newUid() })]
    const { tags } = world.components
    const importTag: typeof tags.importTag = async (row) => {
      await tags.setBatchStatus('closing', 'revoked')
      return tags.importTag(row)
    }
    const writing = writeTags(
      sessionWith(() => {}, { ...tags, importTag }),
      { host, batch: 'closing', count: 2 },
      readerWith([{ chip: first }, { chip: next }]),
    )
    await assert.rejects(writing, /^Error: Batch closing is not active: make new tags in another batch\.$/)
    assert.deepEqual([isBlank(first), isBlank(next)], [false, true])
  })

  it('leaves the next chip blank once another machine has changed the keys of the batch', async () => {
    const [first, next] = [createChip({ uid: newUid() }), createChip({ uid: newUid() })]
    const { tags, tagKeys } = world.components
    const importTag: typeof tags.importTag = async (row) => {
      await tags.putBatch({ id: 'changing', epoch: 0, settings: { macInput: 'empty', keys: 'others' } })
      await tagKeys.reload()
      return tags.importTag(row)
    }
    const writing = writeTags(
      sessionWith(() => {}, { ...tags, importTag }),
      { host, batch: 'changing', count: 2 },
      readerWith([{ chip: first }, { chip: next }]),
    )
    await assert.rejects(writing, /^Error: The keys of batch changing in this data folder are not the newest:/)
    assert.deepEqual([isBlank(first), isBlank(next)], [false, true])
  })

  it('registers no chip whose address the verifier does not take for one of the batch', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const { tagKeys, tags } = world.components
    const others = tagKeys.keys.candidates().map((batch) => ({ ...batch, id: `not-${batch.id}` }))
    const heard: string[] = []
    const ended = sessionWith((line) => heard.push(line) > 0 && line.startsWith('Chip '))
    const store = { ...ended.store, tagKeys: { ...tagKeys, keys: createKeyRing(others) } }
    assert.equal(await writeTags({ ...ended, store }, { host, batch: 'b' }, readerWith([{ chip }])), 1)
    assert.match(heard.join('\n'), new RegExp(`^Chip ${toHex(uid)} was written but does not verify; .*tag doctor`, 'm'))
    assert.deepEqual([await tags.tagOfUid(uid), await journals()], [undefined, [`${toHex(uid)}.json`]])
    assert.equal(await writeTags(session, { host, batch: 'b' }, readerWith([{ chip }])), 0)
  })

  it('writes all chips of a file, no more than it has, with the version of their epoch', async () => {
    const chips = await chipsOfFile('all.csv', 3)
    const heard: string[] = []
    const write = (count: number | undefined, ...some: typeof chips) =>
      writeTags(
        sessionWith((line) => void heard.push(line)),
        { host, batch: 'later', from: path('all.csv'), ...(count !== undefined && { count }) },
        readerWith(some),
      )
    assert.equal(await write(1, ...chips.slice(0, 1)), 0)
    assert.equal(await write(undefined, ...chips.slice(1)), 0)
    assert.equal(heard.at(-2), '2 of 2 tags written.')
    for (const { chip } of chips) assert.deepEqual(chip.versions(), [2, 2, 2, 2, 2])
    const [more] = await chipsOfFile('more.csv', 1)
    const from = path('more.csv')
    assert.equal(await writeTags(session, { host, batch: 'b', from, count: 2 }, readerWith([more ?? assert.fail()])), 0)
  })

  it('ends when it is stopped while it waits for a chip, and closes the reader', async () => {
    const pcsc = readerWith([])
    const stopped = sessionWith((line) => line === 'Reader: ACS')
    assert.equal(await writeTags(stopped, { host, batch: 'b' }, pcsc), 1)
    assert.equal(pcsc.isOpen(), false)
  })

  it('leaves a chip blank that is registered in another batch, or in a later life', async () => {
    const { tags } = world.components
    for (const [batchId, epoch] of [
      ['other', 0],
      ['later', 1],
    ] as const) {
      const uid = newUid()
      await tags.importTag({ uid, epoch, batchId })
      const chip = createChip({ uid })
      const heard: string[] = []
      const ended = sessionWith((line) => heard.push(line) > 0 && line.startsWith('Chip '))
      assert.equal(await writeTags(ended, { host, batch: 'b' }, readerWith([{ chip, liftedAt: 4 }])), 1)
      assert.equal(
        heard.find((line) => line.startsWith('Chip ')),
        `Chip ${toHex(uid)} is registered in batch ${batchId}, epoch ${epoch}: write it for that batch, or put it aside.`,
      )
      assert.deepEqual([isBlank(chip), await journals()], [true, []])
    }
  })

  it('names the damaged journal of a chip, leaves both as they are, and finishes the chip with what it says', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const heard: string[] = []
    const write = (tornAt?: number) => {
      const by = sessionWith((line) => heard.push(line) > 0 && /put it back|is damaged/.test(line))
      return writeTags(by, { host, batch: 'b' }, readerWith([{ chip, ...(tornAt && { tornAt }) }]))
    }
    await write(20)
    const file = path(`keys/chips/${toHex(uid)}.json`)
    const begun = await readFile(file, 'utf8')
    const keys = chip.keys()
    for (const damaged of [
      '',
      begun.slice(0, -1),
      'null',
      begun.replace('[', '[7,'),
      begun.replace(/"batch":"b",/, ''),
    ]) {
      await writeFile(file, damaged)
      assert.equal(await write(), 1)
      assert.match(heard.at(-2) ?? '', new RegExp(`^The journal ${file} is damaged: put chip ${toHex(uid)} aside\\.`))
      assert.deepEqual([await readFile(file, 'utf8'), chip.keys()], [damaged, keys])
    }
    await writeFile(file, heard.at(-2)?.match(/\{.*\}$/)?.[0] ?? '')
    assert.equal(await write(), 0, heard.join('\n'))
    assert.equal((await world.components.tags.tagOfUid(uid))?.batchId, 'b')
  })

  it('writes the chips of a file for one batch, and needs a place for its report', async () => {
    const from = path('mixed.csv')
    await writeFile(from, `uid,batch\n${toHex(newUid())},other\n`)
    const write = (batch: string) => writeTags(session, { host, batch, from }, readerWith([]))
    await assert.rejects(write('b'), /Line 2 is of batch other: write its chips with --batch other/)
    await mkdir(`${from}.written.csv`)
    await assert.rejects(write('other'), /The report .*mixed\.csv\.written\.csv cannot be written \(EISDIR\)/)
    const command = `tag write --from ${from} --batch b --host v.example --item 1/2`
    assert.match((await run(command)).err, /--from has the item of each chip: leave --item out/)
  })

  it('takes a chip of a file as written where this batch has it, in this life or by this run', async () => {
    const chips = await chipsOfFile('lives.csv', 4)
    const [first = assert.fail(), later = assert.fail(), here = assert.fail(), blank = assert.fail()] = chips
    const { tags } = world.components
    await tags.importTag({ uid: first.uid, epoch: 0, batchId: 'other', baselineCounter: 3 })
    await tags.importTag({ uid: later.uid, epoch: 1, batchId: 'b', baselineCounter: 3 })
    await tags.importTag({ uid: here.uid, epoch: 0, batchId: 'b', baselineCounter: 3 })
    const list = await openChipList(session, path('lives.csv'), { host, batch: 'b' })
    const written = () => chips.map(({ name }) => list.isWritten(name))
    assert.deepEqual([list.left(), written()], [3, [false, false, true, false]])
    await list.written(blank.name, 1)
    assert.deepEqual([list.left(), written()], [2, [false, false, true, true]])
    await list.close()
  })

  it('finishes a chip with the address that it was begun with only', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const ended = sessionWith((line) => line.includes('put it back'))
    await writeTags(ended, { host, batch: 'b' }, readerWith([{ chip, tornAt: 20 }]))
    const keys = chip.keys()
    await assert.rejects(
      writeTags(session, { host: 'w.example', batch: 'b' }, readerWith([{ chip }])),
      /^Error: Chip \w+ was begun for batch b and https:\/\/v\.example\/\S+; finish it with these\.$/,
    )
    assert.deepEqual(chip.keys(), keys)
    assert.equal(await writeTags(session, { host, batch: 'b' }, readerWith([{ chip }])), 0)
  })

  it('keeps the lines of two stations that write the chips of one file at once', async () => {
    const chips = await chipsOfFile('shared.csv', 3)
    const list = () => openChipList(session, path('shared.csv'), { host, batch: 'b' })
    const [one, other] = [await list(), await list()]
    for (const [index, { name }] of chips.entries()) await (index === 1 ? other : one).written(name, 1)
    for (const each of [one, other]) await each.close()
    assert.deepEqual(
      (await linesOf('shared.csv')).slice(1).map((line) => line.split(',')[1]),
      chips.map(({ name }) => name),
    )
  })

  it('ends with a sentence where its report cannot be written, and has the line at the next run', async () => {
    const [chip = assert.fail()] = await chipsOfFile('full.csv', 1)
    const report = path('full.csv.written.csv')
    const write = (by: Session) =>
      writeTags(by, { host, batch: 'b', from: path('full.csv') }, readerWith([{ chip: chip.chip }]))
    await symlink('/dev/full', report)
    await assert.rejects(
      write(session),
      /^Error: The report \S+full\.csv\.written\.csv cannot be written \(ENOSPC\)\.$/,
    )
    assert.ok(isBlank(chip.chip))
    await rm(report)

    execFileSync('mkfifo', [report])
    const reader = open(report)
    const { tags } = world.components
    const importTag: typeof tags.importTag = async (row) => {
      await (await reader).close()
      return tags.importTag(row)
    }
    const cut = write(sessionWith(() => {}, { ...tags, importTag }))
    await assert.rejects(
      cut,
      /^Error: The report \S+ cannot be written \(EPIPE\)\. Its chips are registered: run this again/,
    )
    assert.deepEqual(await journals(), [], 'the chip is finished')
    await rm(report)
    await writeFile(report, 'of an earlier run')
    await chmod(report, 0o644)
    assert.equal(await write(session), 0)
    assert.equal((await linesOf('full.csv'))[1]?.split(',')[1], chip.name)
    assert.equal((await stat(report)).mode & 0o777, 0o600)
  })
})
