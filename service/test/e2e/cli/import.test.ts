/** `touchstone tag import` (spec §3, §4.4): each row once, however often it is interrupted, corrected and run again. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { encodeFunctionData } from 'viem'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import { createWriter } from '../../../src/chain/transactions/writer.ts'
import { openMints } from '../../../src/cli/tag/import/steps.ts'
import { locks } from '../../../src/db/locks.ts'
import { createLog } from '../../../src/lib/log.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { batchHint } from '../../../src/tap/keys/batch.ts'
import { deriveTagKeys } from '../../../src/tap/provisioning/key-rows.ts'
import { keys } from '../../support/index/writer-world.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { aloneCommandsOf, assertionsOf, commandsOf, type Ran } from '../../support/processes/cli.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { useOpened } from '../../support/opened.ts'
import { noMetadata } from '../../support/world.ts'

const totalSupply = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'totalSupply' })
const uidOf = (n: number) => `04C0FFEE${n.toString(16).toUpperCase().padStart(6, '0')}`

describe('touchstone tag import', () => {
  const world = useOpened(startFaultWorld)
  const run = commandsOf(world)
  before(async () => {
    await run('tag batch create b --demo')
    await run('tag batch create next --demo --epoch 1')
    await run('tag batch create leaked --demo')
    await run('tag batch revoke leaked')
  })

  const path = (name: string) => join(world.settings.DATA_DIR, name)
  const write = (name: string, ...rows: string[]) => writeFile(path(name), rows.join('\n'))
  const summary = ({ out }: Ran) => /rows in [\d.]+ s: ([^.(]*)/.exec(out)?.[1]?.trim()
  const report = async (name: string) =>
    (await readFile(path(`${name}.report.csv`), 'utf8')).trim().split('\n').slice(1)
  const supply = async () => Number(await world.rpc('eth_call', [{ to: world.contract, data: totalSupply }, 'latest']))
  const tapped = async (uid: string, batch = 'b') => {
    const url = await run(`tag emulate --batch ${batch} --uid ${uid} --tap`)
    return (await (await fetch(url.out)).json()) as {
      verified: boolean
      asset: { tokenId: string; lifecycleState: string }
    }
  }

  it('registers without a chain, and brings the same tags onto it later', async () => {
    await write('plain.csv', 'uid,batch', `${uidOf(1)},b`, `${uidOf(2)},b`)
    assert.equal(summary(await run('tag import plain.csv')), '2 done')
    assert.equal(await supply(), 0)
    assert.equal(summary(await run('tag import plain.csv --mint --bind --dry-run')), '2 ready')
    assert.equal(await supply(), 0)
    const whole = await run('tag import plain.csv --mint --bind --activate')
    assert.equal(summary(whole), '2 done')
    assert.match(whole.out, /^On chain: 1 mints of up to 200 rows, 2 bindings, 2 activations; 1 batches of reads\.$/m)
    assert.deepEqual(await report('plain.csv'), [
      `2,${uidOf(1)},b,0,1,done,"minted, bound, activated, registered"`,
      `3,${uidOf(2)},b,0,2,done,"minted, bound, activated, registered"`,
    ])
    assert.equal(summary(await run('tag import plain.csv --mint --bind --activate')), '2 unchanged')
    const { seconds, ...again } = JSON.parse(
      (await run('tag import plain.csv --mint --bind --activate --json')).out,
    ) as { seconds: number }
    assert.ok(seconds >= 0)
    const outcomes = { done: 0, unchanged: 2, ready: 0, refused: 0, pending: 0, failed: 0 }
    const sent = { mint: 0, bind: 0, activate: 0, reads: 0 }
    assert.deepEqual(again, { rows: 2, ...outcomes, ...sent, report: `${path('plain.csv')}.report.csv`, ended: null })
    assert.deepEqual((await tapped(uidOf(2))).asset.tokenId, '2')
    assert.equal((await tapped(uidOf(2))).asset.lifecycleState, 'ACTIVATED')
  })

  it('registers a tag that was tapped before, in a row without anything else too', async () => {
    const uid = '04C0FFEE00F00D'
    assert.equal((await tapped(uid)).verified, false)
    await write('tapped.csv', 'uid,batch', `${uid},b`)
    const known = () => world.components.tags.tagOfUid(Buffer.from(uid, 'hex'))
    assert.equal((await known())?.isRegistered, false)
    assert.equal(summary(await run('tag import tapped.csv')), '1 done')
    assert.equal((await known())?.isRegistered, true)
    assert.equal(summary(await run('tag import tapped.csv')), '1 unchanged')
  })

  it('refuses rows one by one, says why, and does the others', async () => {
    await write(
      'mixed.csv',
      'uid,batch,epoch,tokenId,gtin,serial,name',
      `${uidOf(3)},b,,,9520001000010,A,Watch`,
      `${uidOf(4)},b,,,9520001000010,A,Watch`,
      `${uidOf(3)},b,,,,,`,
      `${uidOf(5)},none,,,,,`,
      `${uidOf(6)},leaked,,,,,`,
      `${uidOf(7)},b,4,,,,`,
      `${uidOf(8)},b,,2,,,`,
      `${uidOf(1)},b,,9,,,`,
      'no uid,b,,,,,',
      `${uidOf(9)},b,,9999,,,`,
    )
    const ran = await run('tag import mixed.csv --mint --bind')
    assert.equal(ran.exit, 1)
    assert.equal(summary(ran), '1 done, 9 refused')
    const reasons = (await report('mixed.csv')).map((line) => line.replace(/^\d+,[^,]*,[^,]*,[^,]*,[^,]*,/, ''))
    assert.deepEqual(reasons, [
      'done,"minted, bound, registered"',
      'refused,"Column serial: item 09520001000010 A is in the file before; remove one of the two."',
      `refused,"Column uid: tag ${uidOf(3)} is in the file before; remove one of the two."`,
      'refused,"Column batch: There is no batch named none; touchstone tag batch list names all."',
      'refused,"Column batch: Batch leaked is revoked; its tags need another batch."',
      'refused,"Column epoch: Batch b has epoch 0; leave the cell empty for it."',
      'refused,"Column tokenId: Another tag is registered with this asset; leave the cell empty to mint a new one."',
      'refused,"Column tokenId: This tag is registered with asset 1; leave the cell empty for it."',
      'refused,"Column uid: A UID has 14 hex digits and begins with 04, such as 04DE5F1EACC040. Format the column as text: a spreadsheet may have made a number of it."',
      'refused,Asset 9999 does not exist.',
    ])
    assert.equal(await supply(), 3)
    const { untrusted } = (await (await world.get('/api/asset/3')).json()) as { untrusted: { name: string } }
    assert.equal(untrusted.name, 'Watch')
  })

  const chip = '04A1B2C3D4E5F6'
  const { ok, refused } = assertionsOf((...argv) => run(...argv))

  it('takes the UIDs of a file, one a line or a table with a column uid', async () => {
    await writeFile(path('uids.txt'), `${chip}\n04:a1:b2:c3:d4:e5:f7\n${chip}\n`)
    await writeFile(path('uids.csv'), `gtin;uid\n9520001000010;${chip}\n;04A1B2C3D4E5F7\n`)
    const command = 'tag keys --batch b --host v.example'
    const [lines, table] = [await ok(`${command} --file uids.txt`), await ok(`${command} --file uids.csv`)]
    assert.equal(lines, table)
    assert.deepEqual(
      (JSON.parse(lines) as { uid: string }[]).map((row) => row.uid),
      [chip, '04A1B2C3D4E5F7'],
    )
    await writeFile(path('uids.txt'), `${chip}\n4.8E+13\n`)
    assert.match(await refused(`${command} --file uids.txt`), /Line 2 of .*uids\.txt, column uid: A UID has 14 hex/)
    assert.match(await refused(`${command} --file none.txt`), /There is no file/)
    assert.match(await refused(command), /Name the tags: --uid 04…, or --file/)
  })

  it('prepares every chip of a file with its own link, and nothing while a row is wrong', async () => {
    const rows = ['uid,gtin,serial,name', `${chip},9520001000010,A/7,Watch`, '04A1B2C3D4E5F7,,,Watch']
    await writeFile(path('chips.csv'), rows.join('\n'))
    const prepare = 'tag prepare chips.csv --batch b --host v.example'
    assert.match(await ok(prepare), /^2 chips prepared in .*chips\.csv\.prepared\.csv, without keys\.$/)
    const out = path('chips.json')
    const said = await ok(`${prepare} --format json --reveal --out chips.json --json`)
    assert.deepEqual(JSON.parse(said), { rows: 2, keys: true, out })
    assert.equal((await stat(out)).mode & 0o777, 0o600)
    const chips = JSON.parse(await readFile(out, 'utf8')) as { url: string; ndef: string; keys: string[] }[]
    const hint = batchHint('b')
    const zeros = `b=${hint}&picc=${'0'.repeat(32)}&cmac=${'0'.repeat(16)}`
    assert.deepEqual(
      chips.map(({ url }) => url),
      [`https://v.example/01/09520001000010/21/A%2F7?${zeros}`, `https://v.example/tap?${zeros}`],
    )
    const record = world.components.tagKeys.record('b') ?? assert.fail()
    const appMaster = await world.components.tagKeys.appMaster('b')
    const expected = await deriveTagKeys(record, Uint8Array.from(Buffer.from(chip, 'hex')), { app: appMaster })
    assert.deepEqual(chips[0]?.keys, expected.map(toHex))

    await writeFile(path('wrong.csv'), [...rows, `${chip},,,Twice`, '04A1B2C3D4E5F8,9520001000011,B,'].join('\n'))
    const wrong = await run('tag prepare wrong.csv --batch b --host v.example')
    assert.equal(wrong.exit, 1)
    assert.match(wrong.err, /^touchstone: 2 rows of .*wrong\.csv must be corrected; nothing was done\.$/m)
    assert.match(
      wrong.err,
      /^ {2}line 4: Column uid: tag 04A1B2C3D4E5F6 is in line 2 already; remove one of the two\.$/m,
    )
    assert.match(wrong.err, /^ {2}line 5: Column gtin: .*check digit/m)
    await assert.rejects(stat(path('wrong.csv.prepared.csv')))
    const own = 'https://v.example/{gtin}/{serial}?picc={picc}&cmac={cmac}'
    const url = await run('tag prepare chips.csv --batch b --url', own)
    assert.match(url.err, /line 3: Column gtin: It is empty, and --url has \{gtin\}/)

    assert.match(await refused('tag prepare chips.csv --batch b'), /Give the address: --host/)
    const wide = await run(`tag prepare chips.csv --batch b --host ${'long.'.repeat(30)}example`)
    assert.match(wide.err, /^ {2}line 2: Column serial: /m)
    await writeFile(path('many.csv'), ['uid', ...Array.from({ length: 23 }, () => 'none')].join('\n'))
    const many = await run('tag prepare many.csv --batch b --host v.example')
    assert.match(many.err, /23 rows of .*\n {2}line 21: [^\n]*\n {2}and 3 more$/s)
    await writeFile(path('one.csv'), `uid\n${chip}`)
    const revealed = await ok('tag prepare one.csv --batch b --host v.example --reveal')
    assert.match(revealed, /^1 chip prepared in .*, keys included: remove it when the tags are made\.$/)
  })

  it('ends when the making of chips is interrupted, while it reads, lays out or derives', async () => {
    /** A signal that is found aborted by the check of this number, and those after it. */
    const abortedAt = (check: number) => {
      let checks = 0
      return {
        get aborted() {
          return ++checks >= check
        },
      } as AbortSignal
    }
    for (const [line, check] of [
      ['tag prepare chips.csv --batch b', 1],
      ['tag prepare chips.csv --batch b', 2],
      ['tag prepare chips.csv --batch b', 3],
      [`tag keys --batch b --uid ${chip}`, 1],
    ] as const) {
      const ended = await commandsOf(world, {}, { signal: abortedAt(check) })(`${line} --host v.example --out cut.csv`)
      const said = 'touchstone: The command was interrupted. Nothing was changed.'
      assert.deepEqual([ended.exit, ended.out, ended.err], [1, '', said], `${line} ${check}`)
      await assert.rejects(stat(path('cut.csv')), { code: 'ENOENT' })
    }
  })

  it('does nothing at all for a file that is broken', async () => {
    await write('broken.csv', 'uid,batch', `${uidOf(20)},b`, `"${uidOf(21)},b`)
    const broken = await run('tag import broken.csv')
    assert.deepEqual([broken.exit, broken.err], [1, 'touchstone: Line 3: a quote is not closed.'])
    assert.equal(await world.components.tags.tagOfUid(Uint8Array.from(Buffer.from(uidOf(20), 'hex'))), undefined)
    assert.match((await run('tag import none.csv')).err, /^touchstone: There is no file .*none\.csv\.$/)
    await write('wrong-head.csv', 'uid,batch,colour', '')
    assert.match((await run('tag import wrong-head.csv')).err, /names a column "colour"/)
    await write('bind.csv', 'uid,batch', `${uidOf(22)},b`)
    assert.equal(summary(await run('tag import bind.csv --bind')), '1 refused')
    await write('item.csv', 'uid,gtin,serial', `${uidOf(22)},9520001000010,Z`)
    assert.match((await run('tag import item.csv')).err, /column batch, or give --batch for all rows/)
    assert.equal(summary(await run('tag import item.csv --batch b')), '1 refused')
    assert.match((await report('item.csv'))[0] ?? '', /Column tokenId: .*add --mint/)
  })

  it('gives a tag that the chain knows its own token again, also when the store was lost', async () => {
    await write('lost.csv', 'uid,batch', `${uidOf(1)},b`)
    await world.components.database.query('delete from tag where uid = $1', [
      Uint8Array.from(Buffer.from(uidOf(1), 'hex')),
    ])
    assert.equal(summary(await run('tag import lost.csv --mint --bind')), '1 done')
    assert.deepEqual(await report('lost.csv'), [`2,${uidOf(1)},b,0,1,done,registered`])
    assert.equal(await supply(), 3)
  })

  it('gives a tag its asset in a new life too, which ends the old one', async () => {
    const unused = await run(`tag emulate --batch b --uid ${uidOf(2)} --tap`)
    await write('next.csv', 'uid,batch', `${uidOf(2)},next`)
    assert.equal(summary(await run('tag import next.csv --mint --bind')), '1 done')
    assert.equal((await tapped(uidOf(2), 'next')).asset.tokenId, '2')
    assert.equal(((await (await fetch(unused.out)).json()) as { reason: string }).reason, 'replayed')
    assert.equal(summary(await run('tag import plain.csv')), '1 unchanged, 1 refused')
  })

  it('mints nothing twice when it was cut off between minting and registering', async () => {
    const { operator } = world.components
    const before = await supply()
    const options = {
      ...world.components,
      dataDir: world.settings.DATA_DIR,
      isRegistered: () => Promise.resolve(false),
    }
    const rows = [30, 31, 32].map((n) => ({ name: `${uidOf(n)}-0`, metadataHash: noMetadata }))
    assert.equal(await (await openMints(options)).mint(rows, operator ?? '0x'), null)
    assert.equal(await supply(), before + 3)
    // A run that ends here has recorded no token. The file is imported again with one row more and one less.
    await write('again.csv', 'uid,batch', ...[29, 30, 32].map((n) => `${uidOf(n)},b`))
    assert.equal(summary(await run('tag import again.csv --mint --bind')), '3 done')
    assert.equal(await supply(), before + 4)
    assert.equal((await readdir(path('imports'))).length, 1, 'the group waits for its last row')
    await write('rest.csv', 'uid,batch', `${uidOf(31)},b`)
    assert.equal(summary(await run('tag import rest.csv --mint --bind')), '1 done')
    assert.equal(await supply(), before + 4)
    assert.deepEqual(await readdir(path('imports')), [])
  })

  it('mints nothing while it cannot read what an earlier run has minted', async () => {
    const dataDir = path('broken')
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'imports'), 'a file in place of the folder')
    const options = { ...world.components, dataDir, isRegistered: () => Promise.resolve(false) }
    await assert.rejects(openMints(options), { code: 'ENOTDIR' })
  })

  it('can be stopped, and goes on where it was', async () => {
    const before = await supply()
    await write('long.csv', 'uid,batch', ...Array.from({ length: 450 }, (_, n) => `${uidOf(1_000 + n)},b`))
    const stopping = new AbortController()
    const said: string[] = []
    const err = (line: string) => {
      said.push(line)
      stopping.abort()
    }
    const { exit } = await commandsOf(world, {}, { err, signal: stopping.signal })('tag import long.csv --mint')
    assert.equal(exit, 1)
    assert.match(said.at(-1) ?? '', /ended early: it was stopped; run it again/)
    assert.ok((await report('long.csv')).length < 450)
    const rest = await run('tag import long.csv --mint')
    assert.equal(rest.exit, 0)
    assert.match(summary(rest) ?? '', /^\d+ done, \d+ unchanged$/)
    assert.equal(await supply(), before + 450)
    assert.match(rest.err, /^ {2}100 of 450 rows: /m)
  })

  it('lets one import work at a time', async () => {
    await write('one.csv', 'uid,batch', `${uidOf(40)},b`)
    const both = await Promise.all([run('tag import one.csv --mint'), run('tag import one.csv --mint')])
    assert.deepEqual(
      both.map(({ exit }) => exit).toSorted((a, b) => (a ?? 0) - (b ?? 0)),
      [0, 1],
    )
    assert.ok(both.some(({ err }) => err === 'touchstone: Another import is at work; run this one when it is done.'))
  })

  it('works on one machine at a time, where several share a database', { skip: noPostgres }, async () => {
    await using database = await openOwnDatabase('migrated')
    const folder = path('elsewhere')
    await mkdir(folder)
    const runElsewhere = aloneCommandsOf({ ...world.settings, DATA_DIR: folder, DATABASE_URL: database.url }, folder)
    assert.equal((await runElsewhere('tag batch create b --demo')).exit, 0)
    await writeFile(join(folder, 'shared.csv'), `uid,batch\n${uidOf(45)},b`)
    const [minted, held] = [await supply(), await database.hold(locks.imports)]
    const refused = await runElsewhere('tag import shared.csv --mint')
    assert.deepEqual(
      [refused.exit, refused.err],
      [1, 'touchstone: Another import is at work; run this one when it is done.'],
    )
    assert.equal(await supply(), minted)
    await held?.release()
    const next = await runElsewhere('tag import shared.csv --mint')
    assert.equal(summary(next), '1 done', next.err)
  })

  it('ends where the database may have let another import begin', async () => {
    await write('let-go.csv', 'uid,batch', `${uidOf(46)},b`)
    const hold = () => Promise.resolve({ lost: Promise.resolve(), release: () => Promise.resolve() })
    const database = { ...world.components.database, hold }
    const minted = await supply()
    const lost = await commandsOf(world, { database })('tag import let-go.csv --mint')
    assert.equal(lost.exit, 1)
    assert.match(lost.err, /ended early: the connection to the database was lost; run it again to go on\.$/)
    assert.equal(await supply(), minted)
    assert.equal(summary(await run('tag import let-go.csv --mint')), '1 done')
  })

  it('stores the text that rows share once, however many groups of rows there are', async () => {
    const rows = Array.from({ length: 201 }, (_, n) => `${uidOf(3_000 + n)},b,Meridian`)
    await write('model.csv', 'uid,batch,name', ...rows)
    const { components } = world
    let puts = 0
    const metadata: typeof components.metadata = {
      ...components.metadata,
      put: (canonical) => {
        puts += 1
        return components.metadata.put(canonical)
      },
    }
    assert.equal(summary(await commandsOf(world, { metadata })('tag import model.csv --mint')), '201 done')
    assert.equal(puts, 1)
  })

  it('refuses a row whose asset has other text on chain, which the row names', async () => {
    const flags = ['--batch', 'b', '--mint', '--bind']
    const row = (name: string, brand = 'Maison') => `${uidOf(47)},9520001000010,T-1,${name},${brand},`
    const importRow = async (text: string, ...more: string[]) => {
      await write('texts.csv', 'uid,gtin,serial,name,brand,size', text)
      const ran = await run('tag import texts.csv', ...flags, ...more)
      return [ran.exit, summary(ran), (await report('texts.csv'))[0]?.split(',').slice(5).join(',')] as const
    }
    assert.deepEqual(await importRow(row('Skarf')), [0, '1 done', 'done,"minted, bound, registered"'])
    const id = (await report('texts.csv'))[0]?.split(',')[4] ?? ''
    const reason = (columns: string) =>
      `refused,"Column ${columns}: Asset ${id} has other text on chain, which an import leaves as it is. Change it with touchstone asset metadata ${id}, or correct the row."`
    assert.deepEqual(await importRow(row('Scarf'), '--dry-run'), [1, '1 refused', reason('name')])
    assert.deepEqual(await importRow(row('Scarf', 'Orvelle')), [1, '1 refused', reason('name, brand')])
    await ok(`asset metadata ${id} --name Scarf --size`, '90 cm')
    assert.deepEqual(await importRow(row('Scarf'), '--activate'), [0, '1 done', 'done,activated'])
    assert.deepEqual(await importRow(row('Scarf')), [0, '1 unchanged', 'unchanged,'])
    await world.components.database.query("delete from metadata where body like '%90 cm%'") // the hash is enough
    assert.deepEqual(await importRow(`${row('Scarf')}90 cm`), [0, '1 unchanged', 'unchanged,'])
    const [exit, , unknown] = await importRow(row('Scarf'))
    assert.equal(exit, 1)
    assert.match(
      unknown ?? '',
      /^refused,"The metadata of asset \d+ is not stored here, so that the row cannot be compared/,
    )
    const bare = String(await world.mint())
    await write('bare.csv', 'uid,batch,tokenId,name', `${uidOf(48)},b,${bare},Scarf`)
    assert.equal(summary(await run('tag import bare.csv --bind')), '1 refused')
    assert.match((await report('bare.csv'))[0] ?? '', /Column name: Asset \d+ has other text on chain/)
  })

  it('waits for a transaction that is not mined, and gives its rows their tokens later', async () => {
    const before = await supply()
    await write('slow.csv', 'uid,batch', `${uidOf(50)},b`)
    const { rpc, contract, components } = world
    const chain = { rpc, contract, chainId: 84532, local: true, operations: components.operations }
    const writer = createWriter({ ...chain, keys, log: createLog(() => {}), receiptWaitMs: 500 })
    await world.rpc('evm_setAutomine', [false])
    const first = await commandsOf(world, { writer })('tag import slow.csv --mint')
    assert.equal(summary(first), '1 pending')
    await write('slow.csv', 'uid,batch', `${uidOf(50)},b`, `${uidOf(51)},b`)
    await writer.close()
    await world.rpc('anvil_mine', ['0x1'])
    await world.rpc('evm_setAutomine', [true])
    assert.equal(summary(await run('tag import slow.csv --mint')), '2 done')
    assert.equal(await supply(), before + 2)
  })

  it('ends when the chain is gone for long, and finishes when it is back', async () => {
    const before = await supply()
    await write('gone.csv', 'uid,batch', ...Array.from({ length: 40 }, (_, n) => `${uidOf(60 + n)},b`))
    world.faults.set('rpc-error')
    const gone = await run('tag import gone.csv --mint --bind')
    assert.deepEqual([gone.exit, summary(gone)], [1, '40 failed'])
    assert.match(gone.err, /ended early: the chain does not answer; run it again to go on\.$/)
    world.faults.set('none')
    const back = await run('tag import gone.csv --mint --bind')
    assert.equal(summary(back), '40 done', back.out)
    assert.equal(await supply(), before + 40)
  })
})
