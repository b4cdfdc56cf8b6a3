/** `touchstone index rebuild` in the service that leads the index (spec §4.9). */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { commandRunner } from '../../../src/cli/store-commands.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { graphqlOf, operator } from '../../support/graphql/client.ts'
import { keepSecret } from '../../support/evidence.ts'
import { captureIo, commandsOf } from '../../support/processes/cli.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

describe('touchstone index rebuild', () => {
  const world = useOpened(() => startFaultWorld({ INDEX_CHECK_SECONDS: '86400' }))
  const graphql = useOpened(() => graphqlOf(world, ['read', 'write', 'taps']))

  const arrived = () =>
    until(
      async () =>
        (await world.components.database.query('select from index_cursor where fed_epoch = epoch')).length > 0,
    )

  /** Holds the answers with logs until `release`, or the end of the test. The world of a failed test could not close otherwise. */
  function holdLogs(t: TestContext) {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const before = world.faults.count('eth_getLogs')
    t.after(() => release())
    world.faults.set({ methods: ['eth_getLogs'], held })
    return { asked: () => until(() => world.faults.count('eth_getLogs') > before), release }
  }

  /** Asks one field, and returns its value and the codes of all errors. */
  const ask = (field: string, key?: string) => send(`{ asked: ${field} }`, key)
  async function send(query: string, key = graphql.key): Promise<[value: unknown, ...codes: unknown[]]> {
    const response = await fetch(graphql.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
      body: JSON.stringify({ query }),
    })
    const { data, errors = [] } = (await response.json()) as {
      data: { asked: unknown } | null
      errors?: { extensions: { code: string } }[]
    }
    return [data?.asked ?? null, ...errors.map(({ extensions }) => extensions.code)]
  }

  it('ends when the index was read again, also where the leader has not noticed yet', async (t) => {
    await world.mint()
    const { source, indexer, database } = world.components
    await indexer.until((await source.head()).number, 600_000)
    const { asked, release } = holdLogs(t)
    let ended = false
    const rebuilding = commandsOf(world)('index', 'rebuild', '--yes').finally(() => (ended = true))
    await asked()
    assert.equal(ended, false)
    release()
    const { exit, out, err } = await rebuilding
    assert.equal(exit, 0, err)
    assert.match(out, /^The index is complete to block \d+\.$/m)
    assert.deepEqual(await database.query('select count(*) from asset'), [{ count: 1n }])
  })

  it('answers no list and no product until the index has arrived, instead of none', async (t) => {
    const id = await world.mint()
    const { source, indexer, apiKeys } = world.components
    const head = await source.head()
    assert.ok(await indexer.until(head.number, 600_000))
    const { text: ofBrand, hash } = newApiKey()
    keepSecret(ofBrand)
    await apiKeys.create({ hash, name: 'brand', scopes: ['read', 'write', 'taps', 'approve'], brands: ['Acme'] })
    const fields = [
      `product(id: "${id}") { id }`,
      `product(id: "${id}", block: { number: ${head.number} }) { id }`,
      `transfer(id: "${id}-1") { id }`,
      `node(id: "${id}") { id }`,
      'products { totalCount }',
      'products(filter: { nameContains: "none" }) { edges { node { id } } }',
      `transfers(productId: "${id}") { totalCount }`,
      'productStats(groupBy: STATE) { totalCount }',
      `taps(filter: { productId: "${id}" }) { totalCount }`,
    ]
    const before = await Promise.all(fields.map((field) => ask(field)))
    assert.deepEqual(before.filter((answer) => answer.length > 1).length, 0, JSON.stringify(before))

    const { asked, release } = holdLogs(t)
    const rebuilding = commandsOf(world)('index', 'rebuild', '--yes')
    await asked()
    for (const field of fields) assert.deepEqual(await ask(field), [null, 'INDEX_INCOMPLETE'], field)
    const ofModel = await world.get('/api/product/01/09520001000003')
    assert.equal(ofModel.status, 503, 'it may have items')
    assert.match(await ofModel.text(), /The index is being filled/)
    assert.match(ofModel.headers.get('retry-after') ?? '', /^\d+$/)
    const events = `events(first: 1, productId: "${id}") { edges { node { productId product { id } } } }`
    const [answer, ...codes] = await ask(events)
    assert.deepEqual(answer, { edges: [{ node: { productId: `${id}`, product: null } }] })
    assert.deepEqual(codes, ['INDEX_INCOMPLETE'])
    assert.deepEqual(await ask(events, ofBrand), [null, 'INDEX_INCOMPLETE'])
    assert.deepEqual(await ask('taps { totalCount }'), [{ totalCount: 0 }], 'the log of taps is no part of the index')
    assert.deepEqual(await ask('taps { totalCount }', ofBrand), [null, 'INDEX_INCOMPLETE'])
    assert.deepEqual(await ask('approvals { totalCount }', ofBrand), [null, 'INDEX_INCOMPLETE'])
    const requested = await world.components.approvals.request({ act: 'recycle', subject: String(id) })
    assert.ok(requested.ok)
    const rejecting = `mutation { asked: rejectRequest(input: { approvalId: "${requested.approval.id}" }) { success } }`
    assert.deepEqual(await send(rejecting, ofBrand), [null, 'INDEX_INCOMPLETE'])
    const flagging = `mutation { asked: flagProduct(input: { productId: "${id}", reports: [LOST], idempotencyKey: "k" }) { success } }`
    assert.deepEqual(await send(flagging, ofBrand), [null, 'INDEX_INCOMPLETE'], 'its brand is not known')
    release()
    assert.equal((await rebuilding).exit, 0)
    await arrived()
    assert.deepEqual(await Promise.all(fields.map((field) => ask(field))), before)
  })

  it('refuses to export and to erase personal data until the index has arrived, instead of a part', async (t) => {
    const { source, indexer, database } = world.components
    assert.ok(await indexer.until((await source.head()).number, 600_000))
    const run = commandsOf(world)
    const owned = ['--owner', operator.address]
    const whole = await run('privacy', 'export', ...owned)
    assert.match(whole.out, /"kind":"item"/, whole.err)

    const { asked, release } = holdLogs(t)
    const rebuilding = run('index', 'rebuild', '--yes')
    await asked()
    for (const command of ['export', 'erase']) {
      const { exit, out, err } = await run('privacy', command, ...owned)
      assert.deepEqual([exit, out], [1, ''], command)
      assert.match(err, /The index is being filled/)
    }
    release()
    assert.equal((await rebuilding).exit, 0)
    await arrived()
    assert.deepEqual(await run('privacy', 'export', ...owned), whole)

    const transaction: typeof database.transaction = async (...call) => {
      const result = await database.transaction(...call)
      await run('index', 'rebuild', '--yes')
      await arrived()
      return result
    }
    const components = { ...world.components, database: { ...database, transaction } }
    const meanwhile = await commandsOf({ ...world, components })('privacy', 'export', ...owned)
    assert.match(meanwhile.err, /The index was rebuilt meanwhile/)
  })

  describe('that is interrupted', () => {
    /** Runs a command whose signal aborts when `when` resolves, or where it prints the `lines`-th progress. */
    async function interrupted(
      argv: readonly string[],
      { lines = Infinity, when }: { lines?: number; when?: Promise<unknown> },
    ) {
      const stop = new AbortController()
      const { io, ran } = captureIo(world.settings.DATA_DIR)
      void when?.then(() => stop.abort())
      const err = (line: string) => {
        io.err(line)
        if ((lines -= 1) === 0) stop.abort()
      }
      const run = await commandRunner(readConfig(world.settings), world)
      return ran(await run(argv, { ...io, err, signal: stop.signal }))
    }

    it('ends, while the process that leads reads the index again', async (t) => {
      const { asked, release } = holdLogs(t)
      const when = asked()
      const { exit, err } = await interrupted(['index', 'rebuild', '--yes'], { when })
      release()
      assert.deepEqual([exit, err], [1, 'touchstone: The command was interrupted before the index was complete.'])
      await arrived()
    })

    it('compares no further token, and then no log', async () => {
      for (const lines of [1, 2]) {
        const asked = world.faults.count('eth_getLogs')
        const { exit, out, err } = await interrupted(['index', 'verify'], { lines })
        assert.deepEqual([exit, out], [1, ''], err)
        assert.match(err, /\ntouchstone: The comparison was interrupted\.$/)
        assert.equal(err.split('\n').length, lines + 1)
        assert.equal(world.faults.count('eth_getLogs'), asked)
      }
    })
  })

  it('says in words and as JSON what differs from the chain, and is asked for twice', async () => {
    const { source, indexer, database } = world.components
    const run = commandsOf(world)
    const [first, second] = [await world.mint(), await world.mint()]
    const { number } = await source.head()
    assert.ok(await indexer.until(number, 600_000))
    const supply = Number((await database.query<{ count: bigint }>('select count(*) from asset'))[0]?.count)
    const verify = (...flags: string[]) => run('index', 'verify', ...flags)
    const agree = await verify()
    assert.deepEqual(
      [agree.exit, agree.out],
      [0, `${supply} of ${supply} assets compared at block ${number}: all agree with the chain.`],
    )
    await database.query(`update asset set state = 5 where token_id = ${first}`)
    const one = `compared up to block ${number}: 1 differs from the chain. Run: touchstone index rebuild`
    assert.deepEqual(await verify(), {
      exit: 1,
      out: `asset ${first}: state\n${supply} of ${supply} assets ${one}`,
      err: agree.err,
    })
    assert.equal((await verify('--sample', '1000')).exit, 1)
    await database.query(`delete from asset where token_id = ${second}`)
    const two = (await verify()).out.split('\n')
    assert.ok(two.includes(`The index has ${supply - 1} assets, the chain ${supply}.`), two.join('\n'))
    assert.match(two.at(-1) ?? '', /: 2 differ from the chain\. Run/)
    const { agrees, differences } = JSON.parse((await verify('--json')).out) as Record<string, unknown>
    const named = [first, second].map(String)
    assert.deepEqual([agrees, (differences as { tokenId: string }[]).map(({ tokenId }) => tokenId)], [false, named])

    const unsure = await run('index', 'rebuild')
    assert.deepEqual([unsure.exit, unsure.err.endsWith('Repeat the command with --yes.')], [1, true])
    assert.equal((await verify()).exit, 1, 'nothing was read again')
    assert.deepEqual(JSON.parse((await run('index', 'rebuild', '--yes', '--json')).out), { block: String(number) })
    assert.deepEqual((await verify()).out, agree.out)
    const lines = (await run('index', 'status')).out.split('\n').map((line) => line.replace(/ +/, ' '))
    const { hash } = await source.head()
    assert.deepEqual(lines.slice(0, 4), [
      'role this process leads',
      `indexed block ${number} ${hash}`,
      `head block ${number}`,
      'behind 0 blocks',
    ])
    const away = { ...world.components, source: { ...source, head: () => Promise.reject(new Error('away')) } }
    const status = (await commandsOf({ ...world, components: away })('index', 'status')).out
    assert.match(status, /^head +unknown: the chain does not answer$/m)
  })

  it('of personal data needs a person, and erases after --yes only', async () => {
    const run = commandsOf(world)
    assert.match((await run('privacy', 'export')).err, /Say whose data: --owner <address>, or --uid <uid>\.$/)
    const uid = ['--uid', '04A1B2C3D4E5F6']
    const peppered = { ...world.components, tagHash: undefined } as unknown as typeof world.components
    assert.match(
      (await commandsOf({ ...world, components: peppered })('privacy', 'export', ...uid)).err,
      /TAG_PEPPER is not set/,
    )
    await run('tag', 'batch', 'create', 'b', '--demo')
    await fetch((await run('tag', 'emulate', '--batch', 'b', '--uid', '04A1B2C3D4E5F6', '--tap')).out)
    const taps = async (...flags: string[]) => (await run('privacy', 'erase', ...uid, ...flags)).out
    const dry = await taps()
    assert.match(dry, /^ +1 {2}taps of the ledger$/m)
    assert.match(dry, /\nNothing was erased; repeat the command with --yes\.$/)
    assert.match(await taps('--yes'), /^ +1 {2}taps of the ledger$[^]*\nErased\. Backups from before still have it\.$/m)
    assert.match(await taps(), /^ +0 {2}taps of the ledger$/m)
  })
})
