/** `touchstone tag …`, and `tag write` with chips and a reader in software, within one service (spec §4.4, §5). */
import assert from 'node:assert/strict'
import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { readConfig } from '../../../src/app/config/config.ts'
import { sessionBase, type Session } from '../../../src/cli/session/session.ts'
import { writeTags } from '../../../src/cli/tag/write/write.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { deriveTagKeys } from '../../../src/tap/provisioning/key-rows.ts'
import { assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { createChip } from '../../support/tap/chip.ts'
import { readerWith, tapOf } from '../../support/tap/reader.ts'
import { parametersOf, newUid } from '../../support/tap/tags.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const uid = '04A1B2C3D4E5F6'

const world = useOpened(startWorld)
const inWorld = commandsOf(world)

describe('touchstone tag', () => {
  const printed: string[] = []
  const run = async (...argv: string[]) => {
    const ran = await inWorld(...argv)
    printed.push(ran.out, ran.err)
    return ran
  }
  const { ok, refused } = assertionsOf(run)

  const batchesOf = async () =>
    (JSON.parse(await ok('tag batch list --json')) as { id: string; status: string; macInput: string }[]).map(
      ({ id, status, macInput }) => `${id} ${status} ${macInput}`,
    )

  const tap = () => ok(`tag emulate --batch watches --uid ${uid} --tap`)

  it('makes batches and lists them, without their keys', async () => {
    assert.match(await ok('tag batch list'), /There is no batch yet/)
    await ok('tag batch create watches --demo')
    await ok('tag batch create coats --demo --mac-input picc --epoch 3 --system-id brennhof')
    assert.deepEqual(await batchesOf(), ['watches active empty', 'coats active picc'])
    assert.match(await refused('tag batch create coats'), /A batch named coats exists already/)
    assert.match(await refused('tag batch create long --system-id', 'x'.repeat(17)), /1 to 16 ASCII/)
  })

  it('closes the former epoch of a tag that got a batch of a higher one', async () => {
    const tag = 'tag emulate --uid 04A1B2C3D4E5AA --tap --batch'
    const unused = await ok(tag, 'watches')
    await ok('tag verify', await ok(tag, 'coats')).catch(() => {})
    assert.match(await refused(tag, 'watches'), /belongs to batch coats now/)
    assert.match((await run('tag verify', unused)).out, /^not verified: replayed/)
  })

  it('emulates a tag that counts on, and whose every address verifies once', async () => {
    await ok('asset mint --name', 'Harrow 38')
    await ok(`asset bind 1 --uid ${uid} --batch watches`)
    for (const expected of [1, 2]) {
      const url = await tap()
      const answer = (await (await fetch(url)).json()) as Record<string, unknown>
      assert.deepEqual([answer['verified'], answer['tapCounter']], [true, expected])
    }
    const three = await ok(`tag emulate --batch watches --uid ${uid} --count 3`)
    assert.equal(new Set(three.split('\n')).size, 3)
    assert.match(await refused('tag emulate'), /Give --tap/)
    assert.match(await refused('tag emulate --tap --batch watches'), /belong together/)
    assert.match(await refused('tag emulate --tap'), /There is no demo product here/)
  })

  it('prints templates for a host, an item and an address of one’s own, and each verifies', async () => {
    const addresses = [
      ['--host', 'verify.example.com'],
      ['--url', 'https://example.com/api/verify?b=7&picc={picc}&cmac={cmac}'],
    ]
    for (const [option = '', value = ''] of addresses) {
      const template = JSON.parse(await ok('tag template', option, value, '--json')) as {
        settings: string
        ndef: string
      }
      assert.match(template.settings, /^4000E0C1FF12/)
      for (const [batch = '', name = ''] of [
        ['watches', '04A1B2C3D4E500'],
        ['coats', '04A1B2C3D4E501'],
      ]) {
        const url = await ok(`tag emulate --batch ${batch} --uid ${name}`, option, value, '--tap')
        const path = option === '--host' ? '/tap' : '/api/verify'
        assert.ok(url.startsWith(`${world.url}${path}?`), url)
        const answer = await world.get(`/api/verify${new URL(url).search}`)
        assert.equal(((await answer.json()) as { reason: string }).reason, 'unbound')
      }
    }
    const item = await ok('tag template --host v.example --item 9520001000010/A/7 --mac-input picc')
    assert.match(item, /^url +https:\/\/v\.example\/01\/09520001000010\/21\/A%2F7\?picc=0{32}&cmac=0{16}$/m)
    assert.match(item, /^picc offset +(\d+)\nmac input offset +\1$/m)
    assert.match(await refused('tag template'), /Give the address/)
    assert.match(await refused('tag template --item 1/2'), /--item needs --host/)
    assert.match(await refused('tag template --host', 'Not A Host'), /host name in lower case/)
    assert.match(await refused('tag template --host a.example --item 9520001000011/A'), /right check digit/)
    assert.match(await refused('tag template --url http://a.example/?picc={picc}&cmac={cmac}'), /https/)
  })

  it('gives keys only when asked, only into a new file that its owner alone can read', async () => {
    const record = world.components.tagKeys.record('watches') ?? assert.fail()
    const appMaster = await world.components.tagKeys.appMaster('watches')
    const secrets = (await deriveTagKeys(record, Uint8Array.from(Buffer.from(uid, 'hex')), { app: appMaster })).map(
      toHex,
    )
    const keys = `tag keys --batch watches --uid ${uid},04:a1:b2:c3:d4:e5:f7 --host v.example`
    for (const format of ['json', 'csv', 'gototags', 'apdu']) {
      const shown = await ok(`${keys} --format ${format}`)
      for (const secret of secrets) assert.ok(!shown.includes(secret))
      const said = await ok(`${keys} --format ${format} --reveal --out keys.${format}`)
      assert.match(said, /^2 tags in .*, keys included: remove it when the tags are made\.$/)
      const path = join(world.settings.DATA_DIR, `keys.${format}`)
      const text = await readFile(path, 'utf8')
      for (const secret of secrets) assert.ok(text.includes(secret), format)
      assert.equal((await stat(path)).mode & 0o777, 0o600)
    }
    assert.match(await refused(`${keys} --reveal --out keys.json`), /exists already/)
    assert.match(await refused(`${keys} --reveal`), /Keys are not shown on a screen/)
    assert.match(await refused(`${keys} --epoch 1`), /has epoch 0; .*--epoch 1/)
    assert.match(await refused(`tag keys --batch none --uid ${uid} --host v.example`), /named none/)
  })

  it('verifies in process, which uses the tap up, and says why a tap does not', async () => {
    const url = await tap()
    assert.match(await ok('tag verify', url), /^verified {3}yes.*\nasset {6}1 {2}\(as its issuer says: Harrow 38\)/)
    assert.match(await ok('tag verify', url), /\(the same tap again\)/)
    const altered = url.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    assert.deepEqual(await run('tag verify', altered), {
      exit: 1,
      out: 'not verified: counterfeit (bad_cmac); touchstone tag doctor says more.',
      err: '',
    })
    assert.match(
      (await run('tag verify https://a.example/?picc=00')).out,
      /^not verified: The picc parameter must be 32/,
    )
    const old = await tap()
    await ok('tag verify', await tap())
    assert.match((await run('tag verify', old)).out, /^not verified: replayed/)
    assert.deepEqual(JSON.parse((await run('tag verify', old, '--json')).out), {
      verified: false,
      reason: 'replayed',
    })
    const next = await ok(`tag emulate --batch watches --uid ${uid} --count 2 --json`)
    const { urls } = JSON.parse(next) as { urls: string[] }
    const { verdict, ...shown } = JSON.parse(await ok('tag verify', urls[1] ?? '', '--json')) as Record<string, unknown>
    const { counter } = JSON.parse(next) as { counter: number }
    assert.deepEqual(shown, { verified: true, uid, tapCounter: counter, fresh: true })
    assert.equal((verdict as { token_id: string }).token_id, '1')
  })

  it('finds what is wrong with an address, without using it up', async () => {
    const url = await tap()
    assert.match(await ok('tag doctor', url), /^Nothing is wrong .*\n {2}host +\S+\n {2}uid +04A1B2C3D4E5F6\n/)
    assert.match(await ok('tag verify', url), /^verified {3}yes/)
    const { picc, cmac } = parametersOf(url)
    const eaten = `https://a.example/api/verify?picc=${picc}mac=${cmac}`
    assert.match((await run('tag doctor', eaten)).out, /30 characters instead of 32/)
    assert.equal((await run('tag doctor', eaten)).exit, 1)
  })

  it('revokes a batch at once and for good, unless the revocation is lifted', async () => {
    const url = await tap()
    assert.match(await ok('tag batch retire watches'), /go on verifying/)
    assert.match(await ok('tag verify', url), /^verified {3}yes/)
    assert.match(await ok('tag batch revoke watches'), /counterfeit/)
    assert.match((await run('tag verify', url)).out, /counterfeit \(revoked_batch\)/)
    assert.match(await refused('tag batch retire watches'), /--lift-revocation/)
    await ok('tag batch retire watches --lift-revocation')
    assert.match(await ok('tag verify', url), /^verified {3}yes/)
    assert.match(await ok('tag batch retire watches'), /is retired already/)
    assert.match(await refused('tag batch revoke none'), /There is no batch named none/)
  })

  it('does not take back a revocation of the same moment', async () => {
    await ok('tag batch create raced --demo')
    const { tags, tagKeys } = world.components
    let isRevoked = false
    /** Another operator revokes the batch as soon as the command has read it. */
    const batch: typeof tags.batch = async (id) => {
      const found = await tags.batch(id)
      if (!isRevoked) {
        isRevoked = true
        await ok(`tag batch revoke ${id}`)
      }
      return found
    }
    const { exit, err } = await commandsOf(world, { tags: { ...tags, batch } })('tag batch retire raced')
    assert.equal(exit, 1)
    assert.match(err, /Batch raced is revoked; with --lift-revocation/)
    assert.ok((await batchesOf()).includes('raced revoked empty'))
    assert.equal(tagKeys.record('raced')?.status, 'revoked')
  })

  it('leaves no key and no cryptogram in the log of the service', async () => {
    assert.ok(world.lines.length > 0)
    const taps = printed
      .flatMap((text) => text.match(/(?<=picc=|cmac=)[0-9A-F]{16,32}/g) ?? [])
      .filter((hex) => !/^0+$/.test(hex))
    assert.ok(taps.length > 10)
    const log = world.lines.join('\n').toUpperCase()
    for (const hex of taps) assert.ok(!log.includes(hex))
    const keyFile = await readFile(join(world.settings.DATA_DIR, 'keys.json'), 'utf8')
    for (const { keys } of JSON.parse(keyFile) as { keys: string[] }[])
      for (const key of keys) assert.ok(!log.includes(key))
  })
})

const address = 'https://verify.example.com/api/verify?picc={picc}&cmac={cmac}'

describe('touchstone tag write', () => {
  const said: string[] = []
  let session: Session
  before(async () => {
    await inWorld('tag batch create b')
    const io = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) }
    session = {
      ...sessionBase(readConfig(world.settings), world.url, { store: world.components, chain: world.components }),
      io: { ...io, cwd: '/', signal: new AbortController().signal },
    }
  })

  const journals = () => readdir(join(world.settings.DATA_DIR, 'keys', 'chips')).catch(() => [])

  it('makes blank chips tags that verify, each registered with its counter used up', async () => {
    const uids = [newUid(), newUid()]
    const chips = uids.map((uid) => createChip({ uid }))
    const pcsc = readerWith(chips.map((chip) => ({ chip })))
    const exit = await writeTags(session, { url: address, batch: 'b', count: 2 }, pcsc)
    assert.equal(exit, 0, said.join('\n'))
    assert.equal(pcsc.isOpen(), false) // an open reader has a thread, and the process would not end
    assert.ok(said.includes('Reader: ACS'))
    assert.equal(said.at(-1), '2 of 2 tags written.')
    for (const [index, uid] of uids.entries()) {
      const tag = await world.components.tags.tagOfUid(uid)
      assert.equal(tag?.batchId, 'b')
      assert.ok((tag?.lastCounter ?? 0) >= 1)
      const shown = tapOf(chips[index] ?? assert.fail())
      assert.match((await inWorld('tag verify', shown)).out, /^genuine, but not bound to an item/)
    }
    assert.deepEqual(await journals(), [])
  })

  it('finishes a chip that was taken away when it is put back', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const torn = await writeTags(
      session,
      { url: address, batch: 'b', count: 1, json: true },
      readerWith([{ chip, tornAt: 20 }, { chip }]),
    )
    assert.equal(torn, 0, said.join('\n'))
    assert.ok(said.includes('The chip was taken away too early: put it back.'))
    assert.equal(said.at(-1), '1 of 1 tags written, 1 tries failed.')
    assert.deepEqual(JSON.parse(said.at(-2) ?? ''), { batch: 'b', count: 1, written: 1, failed: 1, report: null })
    assert.equal((await world.components.tags.tagOfUid(uid))?.batchId, 'b')
  })

  it('keeps no key in its journal, and goes on for the same batch and address only', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const stopped = new AbortController()
    const io = {
      ...session.io,
      signal: stopped.signal,
      err: (line: string) => line.includes('put it back') && stopped.abort(),
    }
    await writeTags({ ...session, io }, { url: address, batch: 'b', count: 1 }, readerWith([{ chip, tornAt: 20 }]))
    assert.deepEqual(await journals(), [`${toHex(uid)}.json`])
    const text = await readFile(join(world.settings.DATA_DIR, 'keys', 'chips', `${toHex(uid)}.json`), 'utf8')
    const changed = chip.keys().filter((key) => !/^0+$/.test(key))
    assert.ok(changed.length > 0)
    for (const key of changed) assert.ok(!text.includes(key))
    await inWorld('tag batch create other')
    await assert.rejects(
      writeTags(session, { url: address, batch: 'other', count: 1 }, readerWith([{ chip }])),
      /was begun for batch b and https:.*; finish it with these\./,
    )
  })

  it('writes each chip of a file with its own row, leaves what is written, and refuses chips that are not NXP’s', async () => {
    const [own, next] = [hexToBytes('04518DFAA96180'), newUid()]
    // AN12196 §7.2
    const signature = hexToBytes(
      'D1940D17CFEDA4BFF80359AB975F9F6514313E8F90C1D3CAAF5941AD744A1CDF9A83F883CAFE0FE95D1939B1B7E47113993324473B785D21',
    )
    const [first, second, foreign] = [
      createChip({ uid: own, signature }),
      createChip({ uid: next }),
      createChip({ uid: newUid() }),
    ]
    const from = join(world.settings.DATA_DIR, 'write.csv')
    await writeFile(from, `uid,gtin,serial\n${toHex(next)},9520001000010,W-1\n${toHex(own)},9520001000010,W-2\n`)
    const write = (options: object, ...chips: Parameters<typeof readerWith>[0]) =>
      writeTags(session, { host: 'v.example', batch: 'b', from, ...options }, readerWith(chips))
    const lines = async () => (await readFile(`${from}.written.csv`, 'utf8')).trim().split('\n').slice(1)

    assert.equal(await write({ count: 1, originality: true }, { chip: second, liftedAt: 5 }, { chip: first }), 0)
    assert.ok(
      said.includes(`Chip ${toHex(next)} has no originality signature of NXP: it is no NTAG 424 DNA, put it aside.`),
    )
    assert.match(tapOf(first), /^https:\/\/v\.example\/01\/09520001000010\/21\/W-2\?b=/)
    assert.equal((await lines()).length, 1)

    const torn = { chip: second, tornAt: 20 }
    assert.equal(
      await write({}, { chip: first, liftedAt: 4 }, { chip: foreign, liftedAt: 4 }, torn, { chip: second }),
      0,
    )
    assert.ok(said.includes('1 of 2 chips of the file are to be written.'))
    assert.ok(said.includes(`Chip ${toHex(own)} was written before: put the next one.`))
    assert.ok(said.some((line) => /^Chip \w+ is not in the file: put it aside\.$/.test(line)))
    assert.match(tapOf(second), /\/21\/W-1\?b=/)
    assert.match(
      (await lines()).join('\n'),
      /^3,04518DFAA96180,b,09520001000010,W-2,1,https.*\n2,\w+,b,09520001000010,W-1,/,
    )
    assert.equal(await write({}), 0)
    assert.equal(said.at(-2), '0 of 0 tags written.')
    assert.equal((await lines()).length, 2)
  })

  it('sends no command for a chip to the next one, and takes an answer without status for none', async () => {
    const [one, two] = [createChip({ uid: newUid() }), createChip({ uid: newUid() })]
    const dumb = { ...two, transmit: () => Uint8Array.of(0x90) }
    const before = said.length
    const pcsc = readerWith([{ chip: dumb, liftedAt: 1 }, { chip: one, liftedAt: 15 }, { chip: two }, { chip: one }])
    assert.equal(await writeTags(session, { url: address, batch: 'b', count: 2 }, pcsc), 0)
    const failed = said.slice(before).filter((line) => line === 'The chip was taken away too early: put it back.')
    assert.equal(failed.length, 2)
    assert.equal(said.at(-1), '2 of 2 tags written, 2 tries failed.')
    assert.ok(one.failures() + two.failures() <= 2)
    for (const chip of [one, two]) assert.match((await inWorld('tag verify', tapOf(chip))).out, /^genuine/)
  })

  it('says why a chip is not registered, and keeps its journal; a broken reader ends the run', async () => {
    const uid = newUid()
    await inWorld('tag batch create beside')
    const { tags } = world.components
    const importTag = async () => ({ outcome: 'refused', because: 'other_batch' }) as const
    const store = { ...world.components, tags: { ...tags, importTag } }
    const stopped = new AbortController()
    const heard: string[] = []
    const err = (line: string) => {
      heard.push(line)
      if (line.includes('not registered')) stopped.abort()
    }
    const io = { ...session.io, signal: stopped.signal, err }
    const chip = createChip({ uid })
    assert.equal(
      await writeTags({ ...session, store, io }, { url: address, batch: 'b', count: 1 }, readerWith([{ chip }])),
      1,
    )
    assert.equal(heard.at(-1), `Chip ${toHex(uid)} is not registered: other_batch.`)
    await stat(join(world.settings.DATA_DIR, 'keys', 'chips', `${toHex(uid)}.json`))
    class NFC extends EventEmitter {
      constructor() {
        super()
        setImmediate(() => this.emit('error', new Error('SCardListReaders error: 0x8010002e')))
      }
      close() {}
    }
    const broken = { NFC } as unknown as Parameters<typeof writeTags>[2]
    await assert.rejects(
      writeTags(session, { url: address, batch: 'b', count: 1 }, broken),
      /No PC\/SC reader is connected/,
    )
  })

  it('writes a chip of a file that is registered already, and then leaves it', async () => {
    const uid = newUid()
    await world.components.tags.importTag({ uid, epoch: 0, batchId: 'b' })
    const from = join(world.settings.DATA_DIR, 'registered.csv')
    await writeFile(from, `uid,gtin,serial\n${toHex(uid)},9520001000010,W-3\n`)
    const write = async () => {
      const exit = await writeTags(session, { host: 'v.example', batch: 'b', from }, readerWith([{ chip }]))
      return [exit, said.at(-2)]
    }
    const chip = createChip({ uid })
    assert.deepEqual(await write(), [0, '1 of 1 tags written.'])
    assert.match(await readFile(`${from}.written.csv`, 'utf8'), /\n2,\w+,b,09520001000010,W-3,1,https/)
    assert.deepEqual(await write(), [0, '0 of 0 tags written.'])
  })

  it('says how to get what it needs, and refuses a batch that is closed', async () => {
    assert.deepEqual(await inWorld('tag write --batch b --host verify.example.com'), {
      exit: 1,
      out: '',
      err: 'touchstone: Writing tags needs a PC/SC reader and its package: npm install --no-save nfc-pcsc',
    })
    await inWorld('tag batch retire b')
    await assert.rejects(writeTags(session, { url: address, batch: 'b', count: 1 }, readerWith([])), /is not active/)
  })
})
