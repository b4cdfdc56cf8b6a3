/** `touchstone export` on both databases: whole lists, cells that run nothing, and exports that go on. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { parse } from 'csv-parse/sync'
import { Command } from 'commander'
import { exportCommand } from '../../../src/cli/export.ts'
import { acquireDataFolder } from '../../../src/cli/session/data-directory-lock.ts'
import { runWithin, type Session } from '../../../src/cli/session/session.ts'
import type { Database } from '../../../src/db/database.ts'
import { createLog } from '../../../src/lib/log.ts'
import { createTapLog } from '../../../src/tap/log/recorder.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { touchstone, untilSaid } from '../../support/processes/cli.ts'
import { bob, hashOf, insertAsset, insertTransfer, setCursor } from '../../support/index/rows.ts'

type Row = Record<string, string>

for (const { name, open, skip } of testDatabases())
  describe(`touchstone export on ${name}`, { skip }, () => {
    let database: Database
    const count = 1_203
    before(async () => {
      database = await open()
      const pk = await insertAsset(database, {
        tokenId: 5_000,
        name: '=HYPERLINK("x")',
        brand: '\u202e@b',
        tagHash: hashOf(7),
      })
      await insertTransfer(database, { id: '5000-1', assetPk: pk, status: 'CONFIRMED', settledTx: hashOf(5) })
      await database.query(
        `insert into asset (token_id, owner, state, flags, name, created_at, updated_at, updated_block)
         select n, decode($1, 'hex'), 1, 0, 'Watch ' || n, '2026-02-01', '2026-02-01', 1 from generate_series(1, ${count - 1}) n`,
        [bob.slice(2)],
      )
      await setCursor(database, { number: 1, at: '2026-02-01' })
      await arrive()
      await using taps = createTapLog({ database, log: createLog(() => {}) })
      for (const counter of [1, 2])
        taps.record({ tagHash: hashOf(7) as `0x${string}`, counter, jumpFrom: null, country: 'FR', outcome: 'FRESH' })
    })
    after(() => database.close())
    const arrive = () => database.query('update index_cursor set fed_epoch = epoch')

    /** `abortAfter`: the caller leaves when so many lines are printed. */
    async function run(argv: readonly string[], abortAfter = Infinity) {
      const stopping = new AbortController()
      const [out, err]: [string[], string[]] = [[], []]
      const io: Session['io'] = {
        out: (line) => {
          out.push(line)
          if (out.length >= abortAfter) stopping.abort()
        },
        err: (line) => void err.push(line),
        drained: async () => {},
        cwd: '/',
        signal: stopping.signal,
      }
      const session = { io, store: { database }, chain: null } as unknown as Session
      const program = new Command('touchstone')
      program.addCommand(exportCommand(async (work) => void (await work(session))))
      const error = await runWithin(program, ['export', ...argv], io).then(
        () => null,
        (fault: unknown) => (fault as Error).message,
      )
      return { out, err, error, text: `${out.join('\n')}\n` }
    }
    const rowsOf = (text: string) => parse(text, { columns: true }) as Row[]

    it('prints every product with a header row and its last cursor, and no address', async () => {
      const { text, err, error } = await run(['products', '--csv'])
      assert.equal(error, null)
      const rows = rowsOf(text)
      assert.deepEqual([rows.length, new Set(rows.map(({ id }) => id)).size], [count, count])
      assert.equal(err.join(), `Last cursor: ${rows.at(-1)?.['cursor']}`)
      assert.doesNotMatch(text, /0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/)
      const { name: formula, brand, state, flagged } = rows[0] ?? {}
      assert.deepEqual([formula, brand, state, flagged], [`'=HYPERLINK("x")`, "'@b", 'MINTED', 'false'])
    })

    it('goes on after the cursor of any row, without a header', async () => {
      const whole = (await run(['products'])).out
      for (const at of [1, 499, 500, 501, count - 1]) {
        const cursor = whole[at]?.split(',').at(-1) ?? ''
        assert.deepEqual((await run(['products', '--after', cursor])).out, whole.slice(at + 1))
      }
      const end = whole.at(-1)?.split(',').at(-1) ?? ''
      assert.deepEqual(await run(['products', '--after', end]), {
        out: [],
        err: [`Last cursor: ${end}`],
        error: null,
        text: '\n',
      })
    })

    it('names its last cursor when it is interrupted', async () => {
      const whole = (await run(['products'])).out
      const { out, err, error } = await run(['products'], 10)
      assert.match(error ?? '', /export was interrupted/)
      assert.ok(out.length < whole.length)
      const [, cursor = ''] = /^Last cursor: (\S+)$/.exec(err[0] ?? '') ?? []
      assert.deepEqual([...out, ...(await run(['products', '--after', cursor])).out], whole)
    })

    it('names its last cursor at Ctrl-C where a running service prints it', async () => {
      const whole = (await run(['products'])).out
      const folder = testFolder()
      await using lock = await acquireDataFolder(folder)
      lock.serve(async (argv, io) => {
        // As if the reader had taken the first page and no more before the interrupt.
        const drained = async () => void (io.signal.aborted || (await once(io.signal, 'abort')))
        const session = { io: { ...io, drained }, store: { database }, chain: null } as unknown as Session
        const program = new Command('touchstone')
        program.addCommand(exportCommand(async (work) => void (await work(session))))
        const error = await runWithin(program, argv, io).catch((fault: Error) => fault)
        if (error instanceof Error) io.err(`touchstone: ${error.message}`)
        return error instanceof Error ? 1 : 0
      })
      const running = touchstone(['export', 'products', '--csv'], { DATA_DIR: folder })
      await untilSaid(running, whole[500] ?? '')
      running.child.kill('SIGINT')
      const { exit, out, err } = await running.ended
      assert.equal(exit, 1)
      const [, cursor = ''] = /^Last cursor: (\S+)\ntouchstone: The export was interrupted/.exec(err) ?? []
      assert.deepEqual([...out.trimEnd().split('\n'), ...(await run(['products', '--after', cursor])).out], whole)
    })

    it('prints addresses only when it is asked to', async () => {
      const [transfer] = rowsOf((await run(['transfers', '--csv'])).text)
      assert.deepEqual(
        [transfer?.['id'], transfer?.['product_id'], transfer?.['status']],
        ['5000-1', '5000', 'CONFIRMED'],
      )
      assert.ok(!('from' in (transfer ?? {})))
      const [named] = rowsOf((await run(['transfers', '--csv', '--addresses'])).text)
      assert.match(named?.['from'] ?? '', /^0x[0-9a-fA-F]{40}$/)
    })

    it('prints taps by their product', async () => {
      const rows = rowsOf((await run(['taps', '--csv'])).text)
      const seen = rows.map((row) =>
        [row['product_id'], row['counter'], row['outcome'], row['country'], row['times']].join(' '),
      )
      assert.deepEqual(seen, ['5000 1 FRESH FR 1', '5000 2 FRESH FR 1'])
    })

    it('prints nothing of an index that is being filled, because it lacks products', async () => {
      await database.query('update index_cursor set fed_epoch = null')
      for (const list of ['products', 'transfers', 'taps']) {
        const { out, error } = await run([list, '--json'])
        assert.deepEqual(out, [], list)
        assert.match(error ?? '', /index is being filled/, list)
      }
      await arrive()
    })

    it('refuses a cursor that is none', async () => {
      for (const cursor of [
        '',
        'x',
        '2026-01-01_1',
        '2026-01-01T00:00:00.000000Z_1_2',
        "2026-01-01T00:00:00.000000Z_'",
      ])
        assert.match((await run(['products', '--after', cursor])).error ?? '', /cursor/, cursor)
    })
  })
