/**
 * A brand's engineer with the CLI alone (spec §4.4). The test goes from an empty data folder to hundreds of verified products, with the
 * commands of the handbook in a real `touchstone dev`. A command of each kind runs as a process; the others are sent to the service as
 * those send them.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import {
  aloneCommandsOf,
  freePorts,
  serviceCommandsOf,
  startDev,
  touchstone,
  type Run,
  wordsOf,
} from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'

const uidOf = (n: number) => `04AABBCC${n.toString(16).toUpperCase().padStart(6, '0')}`
/** More than a report of progress and two batches of mints take. */
const tags = 501

describe('a fleet of tags by commands alone', () => {
  const folder = testFolder()
  const dataDir = join(folder, 'data')
  let service: Awaited<ReturnType<typeof startDev>>
  before(async () => {
    await copyEmptyPglite(join(dataDir, 'store'))
    service = await startDev({ DATA_DIR: dataDir, RATE_LIMIT_TAP: '0', INDEX_POLL_MS: '500' })
  })
  after(() => service?.stop())

  /**
   * Containers of other roles have the address that is paid, and no key of the gateway. The bundles of the demonstration need a hash that only
   * its service knows.
   */
  const paid = { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}`, PROOF_BUNDLE: 'on' }
  const asProcess: Run = (...line) => touchstone(wordsOf(line), { ...paid, DATA_DIR: dataDir }, folder).ended

  const okOf =
    (run: Run): ((...argv: string[]) => Promise<string>) =>
    async (...argv) => {
      const ran = await run(...argv)
      assert.equal(ran.exit, 0, `${argv.join(' ')}: ${ran.err}`)
      return ran.out.trim()
    }
  const inService = serviceCommandsOf(dataDir, folder)
  const alone = aloneCommandsOf({ ...paid, DATA_DIR: dataDir }, folder)
  const ok = okOf(inService)

  async function refused(run: Run, ...argv: string[]): Promise<string> {
    const { exit, out, err } = await run(...argv)
    assert.deepEqual([exit, out], [1, ''], argv.join(' '))
    const sentence = err.replaceAll(/^ {2}The chain does not answer; trying again .*\n/gm, '')
    assert.match(sentence, /^touchstone: [^\n]+\n?$/, 'one sentence')
    return sentence.trim()
  }

  const tap = (n: number) => ok(`tag emulate --batch 2026-watches --uid ${uidOf(n)} --tap`)

  it('makes a batch and prints a template for a host name', async () => {
    assert.match(await okOf(asProcess)('tag batch create 2026-watches --demo'), /^Batch 2026-watches made/)
    assert.match(await ok('tag batch list'), /^2026-watches +0 +active +empty +an10922 +here +demo$/m)
    assert.match(
      await ok('tag template --host verify.example.com'),
      /^picc offset +35\nmac input offset +73\nmac offset +73\nfile settings +4000E0C1FF12230000490000490000$/m,
    )
  })

  it('is not checked by touchstone doctor without the settings of the service, which says so', async () => {
    const { exit, out } = await asProcess('doctor')
    assert.match(out, /^ *warning +settings +Process \d+ serves this folder with settings of its own/m)
    assert.match(out, /^Nothing is wrong in the 2 things that were checked\.$/m)
    assert.equal(exit, 0)
  })

  let tokenOf: (n: number) => string

  it('imports hundreds of tags, mints and binds them, and reports on each', async () => {
    const rows = Array.from(
      { length: tags },
      (_, n) => `${uidOf(n)},2026-watches,0,,9520001000010,S-${n},"Harrow ""${n}"""`,
    )
    await writeFile(join(folder, 'tags.csv'), `uid,batch,epoch,tokenId,gtin,serial,name\r\n${rows.join('\r\n')}`)
    const { exit, out, err } = await asProcess('tag import tags.csv --mint --bind')
    assert.equal(exit, 0, out + err)
    assert.match(
      out,
      /^501 of 501 rows in [\d.]+ s: 501 done\. Report: .*tags\.csv\.report\.csv\nOn chain: 3 mints of up to 200 rows, 501 bindings, 0 activations; .*\n$/,
    )
    assert.match(err, /^ {2}500 of 501 rows: 500 done/m)
    const report = (await readFile(join(folder, 'tags.csv.report.csv'), 'utf8')).trim().split('\n').slice(1)
    assert.equal(report.length, tags)
    const tokens = report.map((line) => line.split(',')[4] ?? '')
    assert.equal(new Set(tokens).size, tags)
    tokenOf = (n) => tokens[n] ?? ''
  })

  it('taps one, which verifies as the right asset, once', async () => {
    const answer = await opened(await tap(417))
    assert.equal(answer.verified, true)
    assert.equal(answer.uid, uidOf(417))
    assert.equal(answer.asset.tokenId, tokenOf(417))
    assert.equal(answer.asset.untrusted.name, 'Harrow "417"')
    assert.equal(answer.asset.flagged, false)
    assert.match(await ok(`asset show ${tokenOf(417)}`), /^item +09520001000010 S-417$/m)
    assert.match(await ok('tag verify', await tap(418)), new RegExp(`^asset +${tokenOf(418)} `, 'm'))
  })

  it('flags it, and the next tap shows the flag', async () => {
    assert.match(await ok(`asset flag ${tokenOf(417)} --reason stolen --dry-run`), /^Dry run: would flag/)
    assert.match(await ok(`asset flag ${tokenOf(417)} --reason stolen`), /FLAGGED \(stolen\)$/)
    const { verified, asset } = await opened(await tap(417))
    assert.deepEqual([verified, asset.flagged, asset.lifecycleState], [true, true, 'FLAGGED'])
  })

  it('imports the same file again, and nothing changes', async () => {
    assert.match(await ok('tag import tags.csv --mint --bind'), /: 501 unchanged\./)
    assert.match(await refused(inService, 'asset show', String(Number(tokenOf(tags - 1)) + 1)), /does not exist/)
  })

  it('taps the first product of the demonstration when nothing else is said', async () => {
    const answer = await opened(await okOf(asProcess)('tag emulate --tap'))
    assert.equal(answer.verified, true)
    assert.equal(answer.asset.untrusted.name, 'Loden Day Coat')
    assert.equal((await opened(await ok('tag emulate --tap'))).tapCounter, answer.tapCounter + 1)
  })

  it('keeps a second service out of the folder, and says who is in', async () => {
    const sentence = `touchstone: Process ${service.child.pid} holds the data folder ${dataDir}: end it first, or choose another folder with DATA_DIR.\n`
    for (const name of ['dev', 'serve']) {
      const second = await touchstone([name], { ...freePorts, DATA_DIR: dataDir, LOG_LEVEL: 'silent' }).ended
      assert.deepEqual(second, { exit: 1, out: '', err: sentence })
    }
    assert.equal((await opened(await tap(1))).verified, true)
  })

  it('ends with one sentence when something cannot be done', async () => {
    assert.match(await refused(inService, 'asset activate 99999'), /^touchstone: Asset 99999 does not exist\.$/)
    assert.match(await refused(asProcess, 'asset show seven'), /A token id is a decimal number/)
    assert.match(await refused(inService, `tag emulate --batch none --uid ${uidOf(0)} --tap`), /named none/)
    assert.match(await refused(inService, 'tag import nothing.csv'), /There is no file /)
    for (const own of ['/dev/stdin', '/dev/fd/63', '/proc/self/fd/11'])
      assert.match(
        await refused(asProcess, 'tag keys --batch 2026-watches --host v.example', `--file=${own}`),
        new RegExp(
          `^touchstone: ${own} is open in this process, and the running service executes the command: give it a file\\.$`,
        ),
      )
    assert.match(await refused(asProcess, 'bogus'), /unknown command/)
    assert.match(await refused(asProcess, 'serve'), /PAYMENT_PAY_TO needs a facilitator/)
  })

  it('goes on from the data folder alone when the service has ended, except for what needs the chain', async () => {
    const address = await tap(2)
    assert.equal(await service.stop(), 0)
    assert.match(await okOf(asProcess)('tag batch list'), /^2026-watches +0 +active/m)
    const ok = okOf(alone)
    const diagnosed = await alone('tag doctor', address)
    assert.equal(diagnosed.exit, 1)
    assert.match(diagnosed.out, /No chain is configured here[^]*batch +2026-watches\n/)
    await ok('tag batch create later')
    const keys = `tag keys --batch later --uid ${uidOf(5_000)} --host verify.example.com`
    await ok(`${keys} --reveal --out station.json`)
    assert.equal(
      (JSON.parse(await readFile(join(folder, 'station.json'), 'utf8')) as { keys: string[] }[])[0]?.keys.length,
      5,
    )
    await writeFile(join(folder, 'later.csv'), `uid,batch\n${uidOf(5_000)},later\n`)
    assert.match(await ok('tag import later.csv'), /: 1 done\./)
    const needsChain =
      /^touchstone: This needs the chain: start the service .* or set CHAIN_RPC_URLS and CHAIN_CONTRACT\.$/
    assert.match(await refused(alone, 'asset show 1'), needsChain)
    assert.match(await refused(alone, 'tag import later.csv --mint'), needsChain)
  })

  it('carries out commands that come at the same time one after another', async () => {
    const ids = Array.from({ length: 3 }, (_, n) => `parallel-${n}`)
    const ran = await Promise.all(ids.map((id) => asProcess(`tag batch create ${id}`)))
    const made = ids.filter((_, n) => ran[n]?.exit === 0)
    assert.ok(made.length >= 1)
    for (const { exit, err } of ran) assert.ok(exit === 0 || /^touchstone: [^\n]+\n$/.test(err), err)
    const list = await okOf(alone)('tag batch list')
    for (const id of ids) assert.equal(new RegExp(`^${id} .*here`, 'm').test(list), made.includes(id), list)
  })
})

type Answer = {
  verified: boolean
  uid: string
  tapCounter: number
  asset: { tokenId: string; lifecycleState: string; flagged: boolean; untrusted: { name: string } }
}

/** Opens a tap as a phone does. A busy chain is 502, and the same address is then tried again, as the answer says. */
async function opened(url: string): Promise<Answer> {
  let response = await fetch(url)
  await until(async () => response.status !== 502 || (response = await fetch(url)).status !== 502)
  return (await response.json()) as Answer
}
