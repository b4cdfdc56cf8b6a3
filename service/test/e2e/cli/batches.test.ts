/** `touchstone tag batch import` and `rekey`: existing keys, proved by a tap, and keys that replace others (spec §4.4). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { toHex } from '../../../src/tap/bytes.ts'
import { chipKeys, importedBatch } from '../../../src/tap/keys/batch.ts'
import { hasOwnMetaKey, parseScheme, schemeNames } from '../../../src/tap/keys/derivations.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { aloneCommandsOf, assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { until } from '../../support/wait.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const world = useOpened(startWorld)
const inWorld = commandsOf(world)

describe('touchstone tag batch import', () => {
  const { ok, refused } = assertionsOf(inWorld)
  const path = (name: string) => join(world.settings.DATA_DIR, name)
  const otherMaster = 'AB'.repeat(15) + '01'

  /** Options that another system's chips need, beside the scheme. */
  const extras: Readonly<Record<string, string>> = { 'an10922-systemid': '0x3042F54E585020416275' }

  async function fleetOf(name: string) {
    const scheme = parseScheme(name) ?? assert.fail(name)
    const master = Uint8Array.from(randomBytes(name === 'sdm-backend' ? 32 : 16))
    const metaKey = hasOwnMetaKey(scheme.derivation) ? Uint8Array.from(randomBytes(16)) : undefined
    const systemId = extras[name] ?? 'touchstone'
    const options = { id: 'any', demo: true, scheme, systemId, master, ...(metaKey && { metaKey }) }
    const tag = await testTag(importedBatch(options) ?? assert.fail(name))
    const link = () => {
      const { picc, cmac } = tag.next()
      return `${world.url}/api/verify?picc=${picc}&cmac=${cmac}`
    }
    const metaLine = metaKey === undefined ? '' : `${toHex(metaKey)}\n`
    await writeFile(path(`${name}.key`), `${toHex(master)}\n${metaLine}`, { mode: 0o600 })
    await writeFile(path(`${name}.wrong`), `${otherMaster}\n${metaLine}`, { mode: 0o600 })
    const command = (id: string, file: string, ...more: readonly string[]) => [
      'tag',
      'batch',
      'import',
      id,
      '--scheme',
      name,
      '--master-file',
      file,
      ...(name in extras ? ['--system-id', systemId] : []),
      ...more,
    ]
    return { uid: toHex(tag.uid), link, command }
  }

  for (const name of schemeNames) {
    it(`takes over ${name}: a tag verifies, and a wrong master is refused before anything is stored`, async () => {
      const { uid, link, command } = await fleetOf(name)
      const check = link()
      const wrong = await refused(...command(`my-${name}`, `${name}.wrong`, '--check', check))
      assert.match(wrong, /^These keys did not make this tap\. Nothing is stored\. /)
      assert.equal(world.components.tagKeys.record(`my-${name}`), undefined)
      assert.ok(!(await world.components.tags.batches()).some(({ id }) => id === `my-${name}`))

      const imported = await ok(...command(`my-${name}`, `${name}.key`, '--check', check))
      assert.equal(imported.split('\n')[1], `Proved by tag ${uid}, tap 1, which is not used up.`)
      for (const url of [check, link()]) {
        const answer = (await (await fetch(url)).json()) as { uid: string; reason: string }
        assert.deepEqual([answer.uid, answer.reason], [uid, 'unbound'])
      }
      assert.match(
        await refused(...command(`again-${name}`, `${name}.key`, '--check', link(), '--epoch', '1')),
        new RegExp(`verify in batch my-${name} already`),
      )
    })
  }

  it('says which option is wrong, and tries the other schemes', async () => {
    const { link, command } = await fleetOf('boltcard-v2')
    const check = link()
    const asVersion1 = command('x', 'boltcard-v2.key', '--check', check).with(5, 'boltcard-v1')
    assert.match(await refused(...asVersion1), /no key explains the MAC.* The keys fit --scheme boltcard-v2\.$/)
    assert.match(
      await refused(...command('x', 'boltcard-v2.key', '--check', check, '--mac-input', 'picc')),
      /The keys fit with --mac-input empty\.$/,
    )
    assert.match(
      await refused(
        ...command(
          'x',
          'boltcard-v2.key',
          '--check',
          check.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
        ),
      ),
      /no key explains the MAC/,
    )
  })

  it('takes a tap whose address has other names, which it reports, and never the keys of another batch', async () => {
    const { link, command } = await fleetOf('direct')
    const renamed = () => link().replace('picc=', 'e=').replace('cmac=', 'c=')
    const other = command('renamed', 'direct.key', '--check', renamed())
    assert.match(await refused(...other.with(5, 'an10922')), /The keys fit with --scheme direct\.$/)
    const imported = await inWorld(...other, '--brand', 'Arbor')
    assert.deepEqual([imported.exit, imported.out.split('\n').length], [0, 2])
    assert.match(imported.err, /^The parameters have other names; .* A proxy must rename them\.$/)
    const settings = (await world.components.tags.batch('renamed'))?.settings as Record<string, unknown>
    assert.deepEqual(settings['brands'], ['Arbor'])
    assert.match(await refused(...command('again', 'direct.key', '--epoch', '1')), /^Batch renamed has these keys/)
    const wrongSlot = await fleetOf('an10922')
    assert.match(
      await refused(...wrongSlot.command('slot', 'an10922.key', '--check', wrongSlot.link(), '--file-key-no', '3')),
      /The keys fit with --file-key-no 2\.$/,
    )
    assert.equal(await world.components.tags.batch('slot'), undefined)
  })

  it('takes no keys under which a tag of another batch would verify too, however its address is written', async () => {
    const { uid, link, command } = await fleetOf('an10922')
    const [, sharedMetaKey] = (await readFile(path('an10922.key'), 'utf8')).split('\n')
    await writeFile(path('beside.key'), `${toHex(randomBytes(16))}\n${sharedMetaKey}\n`, { mode: 0o600 })
    await inWorld(...command('beside', 'beside.key'))
    await inWorld(...command('own', 'an10922.key'))
    const record = world.components.tagKeys.record('own') ?? assert.fail()
    const { fileKey, metaKey } = await chipKeys(record, hexToBytes(uid))
    await writeFile(path('one-tag.key'), `${toHex(fileKey)}\n${toHex(metaKey)}\n`, { mode: 0o600 })
    for (const check of [link(), link().replace('picc=', 'e=').replace('cmac=', 'c=')])
      assert.match(
        await refused(...command('one-tag', 'one-tag.key', '--epoch', '1', '--check', check).with(5, 'direct')),
        /^Tags of this batch verify in batch own already\. Nothing is stored\./,
      )
  })

  it('takes keys without a tap, says so, and shows as JSON what it did', async () => {
    const { command } = await fleetOf('direct')
    const { exit, out, err } = await inWorld(...command('unproved', 'direct.key'))
    assert.deepEqual([exit, out.split(':')[0]], [0, 'Batch unproved imported'])
    assert.match(err, /No tap has proved these keys/)
    const next = await fleetOf('tagit-sdm')
    const shown = JSON.parse(
      await ok(...next.command('shown', 'tagit-sdm.key', '--check', next.link(), '--json')),
    ) as object
    assert.deepEqual(shown, {
      id: 'shown',
      scheme: 'tagit-sdm',
      epoch: 0,
      macInput: 'empty',
      proved: true,
      tap: { uid: next.uid, counter: 1 },
    })
  })

  it('wants a file with the keys of the scheme and nothing else, and repeats nothing of it', async () => {
    const { command } = await fleetOf('an10922')
    for (const [text, sentence] of [
      ['', /must hold the master as 32 hex digits, and on a second line the metaRead key/],
      [`${otherMaster}\n`, /on a second line the metaRead key as 32 hex digits/],
      [`${otherMaster}\n${otherMaster.slice(2)}\n`, /as 32 hex digits/],
      [`${otherMaster}\n${otherMaster}\n${otherMaster}\n`, /as 32 hex digits/],
      ['not hex', /as 32 hex digits/],
    ] as const) {
      await writeFile(path('bad.key'), text)
      const said = await refused(...command('bad', 'bad.key'))
      assert.match(said, sentence)
      assert.ok(!said.includes(otherMaster.slice(0, 8)) && !said.includes('not hex'), said)
    }
    assert.match(await refused(...command('bad', 'none.key')), /There is no file .*none\.key\.$/)
    assert.match(
      await refused(...command('bad', 'an10922.key', '--system-id', 'x'.repeat(17))),
      /system id is not legal/,
    )
    assert.match(await refused(...command('my-direct', 'an10922.key')), /named my-direct exists already/)
  })
})

describe('touchstone tag batch brands', () => {
  const { ok, refused } = assertionsOf(inWorld)

  it('names the brands of a new batch and of one that exists, and takes them back', async () => {
    const brandsOf = async () => {
      const all = JSON.parse(await ok('tag batch list --json')) as { id: string; brands: unknown }[]
      const { brands } = all.find(({ id }) => id === 'branded') ?? assert.fail()
      assert.deepEqual(world.components.tagKeys.record('branded')?.brands ?? null, brands, 'the key file has them too')
      return brands
    }
    await ok('tag batch create branded --demo --brand', 'Calder & Wick', '--brand', 'Arbor')
    assert.deepEqual(await brandsOf(), ['Calder & Wick', 'Arbor'])
    assert.match(await ok('tag batch brands branded --brand Arbor'), /has chips of Arbor\./)
    assert.deepEqual(await brandsOf(), ['Arbor'])
    assert.match(await ok('tag batch brands branded --any'), /has chips of any brand\./)
    assert.equal(await brandsOf(), null)
    assert.match(await refused('tag batch brands branded'), /Give --brand, once or several times, or --any/)
    assert.match(await refused('tag batch brands none --any'), /no batch named none/)
  })
})

describe('touchstone tag batch rekey', () => {
  const { ok, refused } = assertionsOf(inWorld)
  const verdictOf = async (tag: Awaited<ReturnType<typeof testTag>>) => {
    const { picc, cmac } = tag.next()
    return ((await (await fetch(`${world.url}/api/verify?picc=${picc}&cmac=${cmac}`)).json()) as { reason: string })
      .reason
  }

  it('takes effect at once for a tag that was tapped before, and is proved like an import', async () => {
    const uid = newUid()
    const batchOf = (id: string) =>
      importedBatch({
        id,
        demo: true,
        scheme: { derivation: 'tagit-sdm' },
        master: Uint8Array.from(randomBytes(16)),
      }) ?? assert.fail(id)
    const [former, next] = [batchOf('former'), batchOf('next')]
    const [tag, changed] = [await testTag(former, { uid }), await testTag(next, { uid, counter: 10 })]
    for (const { id, fileMaster } of [former, next])
      await writeFile(join(world.settings.DATA_DIR, `${id}.master`), toHex(fileMaster), { mode: 0o600 })
    await inWorld('tag batch import chips --scheme tagit-sdm --master-file former.master')
    assert.deepEqual([await verdictOf(tag), await verdictOf(changed)], ['unbound', 'counterfeit'])

    const command = 'tag batch rekey chips --master-file next.master --check'
    const link = ({ picc, cmac }: { picc: string; cmac: string }) => `https://a.example/?picc=${picc}&cmac=${cmac}`
    assert.match(await refused(command, link(tag.next())), /^These keys did not make this tap\. Nothing is stored/)
    assert.equal(await verdictOf(tag), 'unbound')
    assert.match(
      await ok(command, link(changed.next())),
      /^Batch chips has other keys: scheme tagit-sdm.*\nProved by tag/,
    )
    assert.deepEqual([await verdictOf(tag), await verdictOf(changed)], ['counterfeit', 'unbound'])
  })

  it('makes the keys of this folder the newest again with --keep', async () => {
    await ok('tag batch create restored --demo')
    const list = () => ok('tag batch list')
    const other = `update tag_batch set settings = jsonb_set(settings, '{keys}', '"ab"') where id = 'restored'`
    await world.components.database.query(other)
    await until(async () => /^restored .* others here/m.test(await list()))
    const keys = 'tag keys --batch restored --uid 04112233445566 --host a.example'
    assert.match(await refused(keys), /^The keys of batch restored in this data folder are not the newest/)
    assert.match(await refused('tag batch rekey restored --keep --mac-input picc'), /^With --keep/)
    assert.match(await ok('tag batch rekey restored --keep'), /^Batch restored has the keys of this folder/)
    assert.match(await list(), /^restored .* here +demo/m)
    await ok(keys)
  })

  it('makes random keys only while no tag of the batch exists', async () => {
    assert.deepEqual(JSON.parse(await ok('tag batch create fresh --demo --json')), {
      id: 'fresh',
      epoch: 0,
      status: 'active',
      demo: true,
      macInput: 'empty',
      systemId: 'touchstone',
    })
    const before = world.components.tagKeys.record('fresh')
    assert.match(await ok('tag batch rekey fresh'), /^Batch fresh has other keys: scheme an10922/)
    const shown = JSON.parse(await ok('tag batch rekey fresh --json')) as Record<string, unknown>
    assert.deepEqual([shown['id'], shown['proved'], shown['tap']], ['fresh', false, null])
    const after = world.components.tagKeys.record('fresh') ?? assert.fail()
    assert.ok(before?.fileMaster && after.fileMaster)
    assert.notEqual(toHex(after.fileMaster), toHex(before.fileMaster))
    assert.equal(await verdictOf(await testTag(after)), 'unbound')
    assert.match(await refused('tag batch rekey fresh'), /^Tags of batch fresh exist, .* Give --master-file/)
    assert.match(await refused('tag batch rekey chips'), /^Give --master-file/)
    assert.match(await refused('tag batch rekey none'), /named none are not in this data folder/)
    for (const [word, status, changed] of [
      ['retire', 'retired', true],
      ['retire', 'retired', false],
      ['revoke', 'revoked', true],
    ] as const)
      assert.deepEqual(JSON.parse(await ok(`tag batch ${word} fresh --json`)), {
        id: 'fresh',
        epoch: 0,
        status,
        changed,
      })
  })
})

describe('touchstone tag batch create', () => {
  it('says that the running service has no STATION_KEK, whatever the shell has, and how to make the batch', async (t) => {
    const verifier = await startWorld({ env: { STATION_KEK: '' } })
    t.after(() => verifier.end())
    const { ok, refused } = assertionsOf(commandsOf(verifier))
    assert.match(
      await refused('tag batch create spring'),
      /^The running service, which executes this command, has no STATION_KEK\..*docs\/deployment\.md/,
    )
    await ok('tag batch create software --demo')
  })
})

describe('touchstone key rotate-kek', () => {
  it('seals the key files under a new key that a file holds, and the batches stay', async () => {
    const folder = testFolder()
    await copyEmptyPglite(join(folder, 'store'))
    const [former, next] = ['11'.repeat(31) + '02', '22'.repeat(31) + '03']
    for (const [name, text] of [
      ['former', former],
      ['next', next],
    ] as const)
      await writeFile(join(folder, name), `${text}\n`, { mode: 0o600 })
    const having = (env: Readonly<Record<string, string>>) =>
      assertionsOf(aloneCommandsOf({ DATA_DIR: folder, ...env }, folder))
    const stationKek = '73'.repeat(31) + '04'
    await having({ TAG_KEK: former, STATION_KEK: stationKek }).ok('tag batch create kept')
    assert.match(await having({ TAG_KEK: former }).refused('key rotate-kek'), /^TAG_KEK_PREVIOUS is not set/)
    const both = having({ TAG_KEK_FILE: join(folder, 'next'), TAG_KEK_PREVIOUS_FILE: join(folder, 'former') })
    assert.match(
      await both.ok('key rotate-kek'),
      /tag-keys\.json\nRemove TAG_KEK_PREVIOUS .*an hour after their last restart/,
    )
    assert.match(
      await both.ok('key rotate-kek'),
      /already\.\nRemove TAG_KEK_PREVIOUS .*an hour after their last restart/,
    )
    assert.deepEqual(JSON.parse(await both.ok('key rotate-kek --json')), { sealed: [] })
    const file = join(folder, 'keys', 'tag-keys.json')
    await rename(file, join(folder, 'elsewhere'))
    for (const line of ['key rotate-kek', 'key rotate-kek --json'])
      assert.equal(
        await both.refused(line),
        `Nothing was sealed: ${file} does not exist, and the database has batches of tags. Name the data folder of the service in DATA_DIR.`,
      )
    await rename(join(folder, 'elsewhere'), file)
    assert.match(await having({ TAG_KEK: next }).ok('tag batch list'), /^kept .* here$/m)
    assert.match(await having({ TAG_KEK: former }).refused('tag batch list'), /sealed under another TAG_KEK/)
    const station = { TAG_KEK: next, STATION_KEK: '74'.repeat(31) + '05' }
    const keys = 'tag keys --batch kept --uid 04DE5F1EACC040 --host a.example --reveal --out'
    const masters = join(folder, 'station', 'station.keys')
    assert.match(await having(station).refused(keys, join(folder, 'none')), /sealed under another STATION_KEK/)
    assert.equal(
      await having({ ...station, STATION_KEK_PREVIOUS: stationKek }).ok('key rotate-kek'),
      `Sealed again: ${masters}\nRemove STATION_KEK_PREVIOUS.`,
    )
    await having(station).ok(keys, join(folder, 'revealed'))
    const formerAlone = await having({ TAG_KEK: next, STATION_KEK_PREVIOUS: stationKek }).refused('key rotate-kek')
    assert.match(formerAlone, /^STATION_KEK is not set: /, 'the former key still opens the file')
    await rename(masters, join(folder, 'elsewhere'))
    const elsewhere = await having({ ...station, STATION_KEK_PREVIOUS: stationKek }).refused('key rotate-kek')
    assert.ok(elsewhere.startsWith(`Nothing was sealed: ${masters} does not exist.`), elsewhere)
    const others = { TAG_KEK: former, TAG_KEK_PREVIOUS: next, STATION_KEK: '75'.repeat(31) + '06' }
    const together = having({ ...others, STATION_KEK_PREVIOUS: station.STATION_KEK })
    const before = await readFile(file, 'utf8')
    assert.ok((await together.refused('key rotate-kek')).startsWith(`Nothing was sealed: ${masters} does not exist.`))
    assert.equal(await readFile(file, 'utf8'), before)
    await rename(join(folder, 'elsewhere'), masters)
    await rename(file, join(folder, 'elsewhere'))
    const sealed = await readFile(masters, 'utf8')
    assert.ok((await together.refused('key rotate-kek')).startsWith(`Nothing was sealed: ${file} does not exist,`))
    assert.equal(await readFile(masters, 'utf8'), sealed)
  })
})
