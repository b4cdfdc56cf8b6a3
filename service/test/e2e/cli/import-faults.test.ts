/** `touchstone tag import` mints and binds nothing twice where a step is refused or an answer is lost (spec §3, §4.4). */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { zeroAddress } from '@touchstone/verdict'
import { createWriter, type Writer } from '../../../src/chain/transactions/writer.ts'
import { openMints } from '../../../src/cli/tag/import/steps.ts'
import { chainUnavailable, databaseUnavailable } from '../../../src/lib/errors.ts'
import { createLog } from '../../../src/lib/log.ts'
import { commandsOf, type Ran } from '../../support/processes/cli.ts'
import { keys } from '../../support/index/writer-world.ts'
import { useOpened } from '../../support/opened.ts'
import { noMetadata, startWorld } from '../../support/world.ts'

const uidOf = (n: number) => `04C0FFEE${n.toString(16).toUpperCase().padStart(6, '0')}`
const stranger = `0x${'5a'.repeat(20)}`

describe('touchstone tag import', () => {
  const world = useOpened(startWorld)
  const run = commandsOf(world)
  before(async () => {
    for (const id of ['b', 'beside']) await run(`tag batch create ${id} --demo`)
  })

  const path = (name: string) => join(world.settings.DATA_DIR, name)
  const groups = () => readdir(path('imports')).catch(() => [])
  const summary = ({ out }: Ran) => /rows in [\d.]+ s: ([^.(]*)/.exec(out)?.[1]?.trim()
  const known = (n: number) => world.components.tags.tagOfUid(Buffer.from(uidOf(n), 'hex'))
  /** The world's writer with other keys, which does not wait long for a block. */
  function writerWith(some: typeof keys): Writer {
    const { contract, rpc, components } = world
    const chain = { rpc, contract, chainId: 84532, local: true, operations: components.operations }
    return createWriter({ ...chain, keys: some, log: createLog(() => {}), receiptWaitMs: 500 })
  }
  const nextToken = async () => (await world.mint()) + 1n

  /** Imports rows, and returns the summary and what the report says of each row. */
  async function imported(rows: readonly string[], flags: readonly string[], by = run) {
    await writeFile(path('rows.csv'), rows.join('\n'))
    const ran = await by('tag', 'import', 'rows.csv', '--batch', 'b', ...flags)
    const report = (await readFile(path('rows.csv.report.csv'), 'utf8')).trim().split('\n').slice(1)
    return [summary(ran), ...report.map((line) => line.split(',').slice(5).join(','))]
  }

  it('uses up the counters that were read when a tag was made', async () => {
    const tap = async () => (await run(`tag emulate --batch b --uid ${uidOf(1)} --tap`)).out
    const reasonOf = async (url: string) => ((await (await fetch(url)).json()) as { reason: string }).reason
    const early = await tap()
    const rows = (counter: number) => ['uid,counter', `${uidOf(1)},${counter}`]
    assert.deepEqual(await imported(rows(5), []), ['1 done', 'done,registered'])
    assert.deepEqual(await imported(rows(4), []), ['1 unchanged', 'unchanged,'])
    assert.deepEqual(await imported(rows(6), []), ['1 done', 'done,registered'])
    assert.equal((await known(1))?.lastCounter, 6)
    assert.deepEqual([await reasonOf(early), await reasonOf(await tap())], ['replayed', 'unbound'])
  })

  it('refuses a tag of another batch, and an item, a tag or an asset that is another’s', async () => {
    const asset = String(await world.mint())
    const item = '9520001000010,A'
    assert.deepEqual(await imported(['uid,tokenId,gtin,serial', `${uidOf(2)},${asset},${item}`], ['--bind']), [
      '1 done',
      'done,"bound, registered"',
    ])
    const free = String(await world.mint())
    assert.deepEqual(
      await imported(
        ['uid,batch,tokenId,gtin,serial', `${uidOf(2)},beside,,,`, `${uidOf(3)},b,${free},${item}`],
        ['--bind'],
      ),
      [
        '2 refused',
        'refused,"Column batch: This tag is registered in another batch of the same epoch; name that one."',
        'refused,"Column serial: Another tag is registered with this gtin and serial; each item has its own serial."',
      ],
    )
    const binding = { formerBinding: async () => 77n } // as under TAG_PEPPER_PREVIOUS
    assert.deepEqual(await imported(['uid,tokenId', `${uidOf(3)},${free}`], ['--bind'], commandsOf(world, binding)), [
      '1 refused',
      'refused,This tag is bound to asset 77 on chain.',
    ])
    assert.deepEqual(await imported(['uid,tokenId,name', `${uidOf(3)},9999,Watch`], ['--bind']), [
      '1 refused',
      'refused,Asset 9999 does not exist.',
    ])
    const { tags } = world.components
    const importTag: typeof tags.importTag = async (row) => {
      await tags.importTag({ ...row, uid: Buffer.from(uidOf(4), 'hex') })
      return tags.importTag(row)
    }
    assert.deepEqual(
      await imported(['uid,tokenId', `${uidOf(3)},${free}`], [], commandsOf(world, { tags: { ...tags, importTag } })),
      [
        '1 refused',
        'refused,"Column tokenId: Another tag is registered with this asset; leave the cell empty to mint a new one."',
      ],
    )
    assert.equal(await known(3), undefined)
  })

  it('activates an asset that is bound, and takes one that others activated as done', async () => {
    const asset = String(await world.mint())
    const rows = ['uid,tokenId', `${uidOf(5)},${asset}`]
    assert.deepEqual(await imported(rows, ['--activate', '--dry-run']), [
      '1 ready',
      'ready,"would be activated, registered"',
    ])
    const unbound = `refused,"Asset ${asset} is MINTED; this step does not lead from there."`
    assert.deepEqual(await imported(rows, ['--activate']), ['1 refused', unbound])
    await imported(rows, ['--bind'])
    assert.equal((await run('asset activate', asset)).exit, 0)
    assert.deepEqual(await imported(rows, ['--activate']), ['1 unchanged', 'unchanged,'])
  })

  it('mints nothing for an owner whom the contract refuses, and keeps nothing of it', async () => {
    const rows = ['uid', uidOf(6)]
    const next = await nextToken()
    assert.deepEqual(await imported(rows, ['--mint', '--to', zeroAddress]), [
      '1 refused',
      'refused,An address is needed where none was given.',
    ])
    assert.deepEqual(await groups(), [])
    assert.deepEqual(await imported(rows, ['--mint', '--to', stranger]), ['1 done', 'done,"minted, registered"'])
    assert.equal((await known(6))?.tokenId, next)
  })

  it('mints nothing without a key of the issuer, also not for this owner later', async () => {
    const next = await nextToken()
    const keyless = commandsOf(world, { operator: null, writer: writerWith({}) })
    await writeFile(path('keyless.csv'), `uid\n${uidOf(7)}`)
    const { exit, err } = await keyless('tag import keyless.csv --batch b --mint --to', stranger)
    assert.deepEqual([exit, /No key of the issuer is configured/.test(err)], [1, true], err)
    assert.deepEqual(await imported(['uid', uidOf(8)], ['--mint']), ['1 done', 'done,"minted, registered"'])
    assert.equal(await nextToken(), next + 2n)
  })

  it('mints once where the answer to a minting is lost', async () => {
    const next = await nextToken()
    const { writer } = world.components
    let isLost = false
    const write: Writer['write'] = async (...request) => {
      const result = await writer.write(...request)
      if (isLost) return result
      isLost = true
      throw chainUnavailable('the answer is lost')
    }
    const losing = commandsOf(world, { writer: { ...writer, write } })
    assert.deepEqual(await imported(['uid', uidOf(9)], ['--mint'], losing), ['1 done', 'done,"minted, registered"'])
    assert.deepEqual([isLost, (await known(9))?.tokenId], [true, next])
    assert.equal(await nextToken(), next + 2n)
  })

  it('keeps a group of earlier rows until a process with the key of the issuer knows its tokens', async () => {
    const next = await nextToken()
    const name = 'import-mint-earlier'
    const group = { key: name, to: stranger, rows: [{ name: `${uidOf(10)}-0`, metadataHash: noMetadata }] }
    await mkdir(path('imports'), { recursive: true })
    const leave = () => writeFile(path(`imports/${name}.json`), JSON.stringify(group))
    await leave()
    const row = ['uid', uidOf(10)]
    const binder = commandsOf(world, { operator: null, writer: writerWith({}) })
    assert.equal((await imported(row, ['--bind'], binder))[0], '1 pending')
    assert.deepEqual(await groups(), [`${name}.json`])
    const other = await run('tag import rows.csv --batch b --mint')
    assert.match(other.err, /minted for another owner: repeat it with the --to that \S+earlier\.json names, or remove/)
    assert.deepEqual([await groups(), await nextToken()], [[`${name}.json`], next + 1n])
    assert.deepEqual(await imported(row, ['--mint', '--to', stranger]), ['1 done', 'done,"minted, registered"'])
    await leave() // as where the process ended before it deleted the file
    assert.deepEqual(await imported(row, ['--mint']), ['1 unchanged', 'unchanged,'])
    assert.deepEqual([await groups(), (await known(10))?.tokenId], [[], next + 1n])
    assert.equal(await nextToken(), next + 3n)
    await writeFile(path(`imports/${name}.json`), '{"key":')
    const options = { ...world.components, dataDir: world.settings.DATA_DIR, isRegistered: async () => false }
    await assert.rejects(openMints(options), /earlier\.json is damaged: without it tokens may be minted twice/)
    assert.match((await run('tag import rows.csv --batch b --mint')).err, /is damaged/)
    await rm(path(`imports/${name}.json`))
  })

  it('waits for a binding that is not mined, and for a minting of an earlier run', async () => {
    const asset = String(await world.mint())
    const impatient = commandsOf(world, { writer: writerWith(keys) })
    await world.rpc('evm_setAutomine', [false])
    const reason = 'pending,"The transaction is not mined yet; run the import again."'
    const bound = ['uid,tokenId', `${uidOf(11)},${asset}`]
    assert.deepEqual(await imported(bound, ['--bind'], impatient), ['1 pending', reason])
    const minted = ['uid', uidOf(12)]
    for (let tries = 0; tries < 2; tries += 1)
      assert.deepEqual(await imported(minted, ['--mint'], impatient), ['1 pending', reason])
    await writeFile(path('other.csv'), minted.join('\n'))
    const other = await impatient('tag import other.csv --batch b --mint --to', stranger)
    assert.match(other.err, /minting of rows for the owner that \S+\.json names, whose assets they stay\.$/m)
    await world.rpc('evm_setAutomine', [true])
    await world.rpc('anvil_mine', ['0x1'])
    assert.equal((await imported(bound, ['--bind']))[0], '1 done')
    assert.equal((await imported(minted, ['--mint']))[0], '1 done')
    assert.deepEqual(await groups(), [])
  })

  it('binds and mints nothing more once the batch is revoked while it runs', async () => {
    const next = await nextToken()
    await run('tag batch create leaking --demo')
    const { writer } = world.components
    const kinds: string[] = []
    const write: Writer['write'] = async (...request) => {
      kinds.push(request[0].kind)
      const result = await writer.write(...request)
      await run('tag batch revoke leaking')
      return result
    }
    const rows = Array.from({ length: 201 }, (_, n) => `${uidOf(1_000 + n)},leaking`)
    const [counts, ...outcomes] = await imported(
      ['uid,batch', ...rows],
      ['--mint', '--bind'],
      commandsOf(world, { writer: { ...writer, write } }),
    )
    assert.deepEqual([counts, kinds], ['201 refused', ['mintBatch']])
    assert.match(
      [...new Set(outcomes)].join(),
      /^refused,"?Column batch: Batch leaking is revoked; its tags need[^,]*$/,
    )
    assert.equal(await nextToken(), next + 201n)
  })

  it('says that the database does not answer, where that ends it', async () => {
    const { tags } = world.components
    const importTag = () => Promise.reject(databaseUnavailable(new Error('it fails over')))
    await writeFile(path('away.csv'), `uid\n${uidOf(16)}`)
    const ended = await commandsOf(world, { tags: { ...tags, importTag } })('tag import away.csv --batch b')
    assert.match(
      ended.err,
      /ended early: The database does not answer\. Try again in a few seconds; run it again to go on\.$/,
    )
  })

  it('has a file with a head and a row, and a place for its report', async () => {
    await writeFile(path('empty.csv'), '')
    const importOf = (name: string) => run(`tag import ${name} --batch b`)
    assert.match((await importOf('empty.csv')).err, /The file is empty; its first line names the columns\.$/)
    await writeFile(path('head.csv'), 'gtin,serial')
    assert.match((await importOf('head.csv')).err, /The first line must name the column uid\.$/)
    await writeFile(path('none.csv'), 'uid\n')
    await writeFile(path('none.csv.report.csv'), 'of an earlier run')
    const none = await importOf('none.csv')
    assert.deepEqual([none.exit, await readFile(path('none.csv.report.csv'), 'utf8')], [1, 'of an earlier run'])
    assert.match(none.err, /none\.csv has no row below its first line; write a row with the uid of each tag\.$/)
    const prepared = await run('tag prepare none.csv --batch b --host verify.example.com')
    assert.deepEqual([prepared.exit, existsSync(path('none.csv.prepared.csv'))], [1, false])
    await writeFile(path('shut.csv'), `uid\n${uidOf(13)}`)
    await mkdir(path('shut.csv.report.csv'))
    assert.match(
      (await importOf('shut.csv')).err,
      /The report .*shut\.csv\.report\.csv cannot be written \(EISDIR\)\.$/,
    )
    assert.equal(await known(13), undefined)
    await symlink('/dev/full', path('full.csv.report.csv'))
    await writeFile(path('full.csv'), `uid\n${uidOf(13)}`)
    assert.match(
      (await importOf('full.csv')).err,
      /The report .*full\.csv\.report\.csv cannot be written \(ENOSPC\)\.$/,
    )
    assert.equal(await known(13), undefined)
  })

  it('makes a report that all users could read private', async () => {
    const report = path('public.csv.report.csv')
    await writeFile(report, 'old')
    await chmod(report, 0o644)
    await writeFile(path('public.csv'), `uid\n${uidOf(15)}`)
    assert.equal(summary(await run('tag import public.csv --batch b')), '1 done')
    assert.equal((await stat(report)).mode & 0o777, 0o600)
  })

  it('ends where its report cannot be written any more, and can be run again', async () => {
    const report = path('cut.csv.report.csv')
    await writeFile(path('cut.csv'), `uid\n${uidOf(14)}`)
    execFileSync('mkfifo', [report])
    const reader = open(report)
    const { tags } = world.components
    const importTag: typeof tags.importTag = async (row) => {
      await (await reader).close()
      return tags.importTag(row)
    }
    const cut = await commandsOf(world, { tags: { ...tags, importTag } })('tag import cut.csv --batch b')
    assert.match(cut.err, /the import ended early: the report cannot be written \(EPIPE\); run it again to go on\.$/)
    assert.deepEqual([cut.exit, summary(cut)], [1, '1 done'])
    await rm(report)
    assert.equal(summary(await run('tag import cut.csv --batch b')), '1 unchanged')
  })
})
