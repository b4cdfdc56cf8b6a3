/** `touchstone asset …` on a real chain (spec §3): the whole life of an asset, and everything that is refused. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import sharp from 'sharp'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { startWorld } from '../../support/world.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { createWriter } from '../../../src/chain/transactions/writer.ts'
import { createLog } from '../../../src/lib/log.ts'
import { keys } from '../../support/index/writer-world.ts'
import { useOpened } from '../../support/opened.ts'

const uid = '04A1B2C3D4E5F6'
const [operator, , consumer] = publishedAccounts(3)

describe('touchstone asset', () => {
  const world = useOpened(startWorld)
  const run = commandsOf(world)
  const { ok, refused } = assertionsOf(run)
  before(() => ok('tag batch create b --demo'))

  const tap = () => ok(`tag emulate --batch b --uid ${uid} --tap`)
  const supply = async () => (await world.get('/api/asset/1')).status

  it('changes nothing in a dry run, and says what it would cost', async () => {
    const out = await ok('asset mint --name', 'Harrow 38', '--dry-run')
    assert.match(
      out,
      /^Dry run: would mint 1 asset with the metadata 0x[0-9a-f]{64}, for at most \d+ gas\. Nothing was sent\.$/,
    )
    assert.equal(await supply(), 404)
  })

  it('mints an asset as an item, whose address then opens, and never a second one as the same item', async () => {
    const item = ['--gtin', '09520001000003', '--serial', 'H38/1']
    const out = await ok('asset mint --id 7000 --name', 'Harrow 38', ...item)
    assert.match(out, /^item {9}09520001000003 H38\/1$/m)
    const page = await world.get('/01/09520001000003/21/H38%2F1')
    assert.deepEqual([page.status, (await page.text()).includes('Harrow 38')], [200, true])
    assert.equal(await refused('asset mint', ...item), 'Asset 7000 is registered under this GTIN and serial.')
    assert.match(await refused('asset mint --gtin 09520001000003'), /belong together/)
    assert.match(await refused('asset mint --count 2', ...item), /name one/)
    await refused('asset mint --gtin 09520001000004 --serial x')
    await refused('asset mint --gtin 09520001000003 --serial ..')
  })

  it('mints with metadata that the verdict then carries, and does a repeated key once', async () => {
    const first = await ok('asset mint --name', 'Harrow 38', '--brand', 'Calder & Wick', '--key', 'harrow-1')
    assert.match(
      first,
      /^transaction {2}0x[0-9a-f]{64}\nblock {8}\d+ 0x[0-9a-f]{64}\nasset {8}1 {2}MINTED\nmetadata {5}0x/,
    )
    const again = await ok('asset mint --name', 'Harrow 38', '--brand', 'Calder & Wick', '--key', 'harrow-1')
    assert.match(again, /done before under this key/)
    assert.equal((await world.get('/api/asset/2')).status, 404)
    const { untrusted } = (await (await world.get('/api/asset/1')).json()) as { untrusted: Record<string, string> }
    assert.equal(untrusted['brand'], 'Calder & Wick')
    const other = await refused('asset mint --name Another --key harrow-1')
    assert.equal(other, 'This idempotency key was used for another request. Send a new one.')
  })

  it('mints many, from a file, and under an id of its own', async () => {
    await writeFile(join(world.settings.DATA_DIR, 'watch.json'), '{"name":"Meridian 41","size":"41 mm"}')
    assert.match(await ok('asset mint --metadata watch.json --count 40'), /assets {7}2 to 41, 40 in all/)
    assert.match(await ok('asset mint --id 900719925474099312345'), /asset {8}900719925474099312345 {2}MINTED/)
  })

  it('refuses metadata that would never be shown', async () => {
    await writeFile(join(world.settings.DATA_DIR, 'bad.json'), '{"colour":"red"}')
    assert.match(await refused('asset mint --metadata bad.json'), /"colour" is none of them/)
    assert.match(await refused('asset mint --metadata bad.json --name x'), /not as both/)
    assert.match(await refused('asset mint --metadata none.json'), /There is no file/)
  })

  const untrusted = async (id: string) => {
    const verdict = (await (await world.get(`/api/asset/${id}`)).json()) as { untrusted: Record<string, string> }
    const { _warning, ...texts } = verdict.untrusted
    return texts
  }

  it('corrects its metadata, of which the rest stays, and shows the new text everywhere', async () => {
    const item = ['--gtin', '09520001000003', '--serial', 'H38/2']
    await ok('asset mint --id 7002 --name', 'Harow 38', '--brand', 'Calder', '--size', '38 mm', ...item)
    const correct = ['asset metadata 7002 --name', 'Harrow 38', '--size', '']
    assert.match(
      await ok(...correct, '--dry-run'),
      /^Dry run: would change the metadata of asset 7002 \(name, size\) to 0x[0-9a-f]{64}, for at most \d+ gas\. Nothing/,
    )
    assert.deepEqual(await untrusted('7002'), { name: 'Harow 38', brand: 'Calder', size: '38 mm' })
    const out = await ok(...correct, '--key', 'correct-1')
    const hash = /^asset {8}7002 {2}MINTED\nmetadata {5}(0x[0-9a-f]{64})$/m.exec(out)?.[1] ?? assert.fail(out)
    assert.deepEqual(await untrusted('7002'), { name: 'Harrow 38', brand: 'Calder' })
    assert.equal(await (await world.get(`/api/metadata/${hash}`)).text(), '{"brand":"Calder","name":"Harrow 38"}')
    const page = await (await world.get('/01/09520001000003/21/H38%2F2')).text()
    assert.ok(page.includes('Harrow 38') && !page.includes('Harow'))
    assert.match(await ok('asset show 7002'), new RegExp(`^metadata {6}${hash}\\n {2}name +Harrow 38$`, 'm'))
    assert.match(await ok('asset history 7002'), new RegExp(`MetadataHashSet metadataHash=${hash}`))
    const acts = JSON.parse(await ok('audit list --json')) as { act: string; subject: string }[]
    assert.ok(acts.some(({ act, subject }) => act === 'setMetadataHash' && subject === '7002'))

    await writeFile(join(world.settings.DATA_DIR, 'whole.json'), '{"name":"Harrow 40","origin":"CH"}')
    await ok('asset metadata 7002 --metadata whole.json')
    assert.deepEqual(await untrusted('7002'), { name: 'Harrow 40', origin: 'CH' })
    assert.match(await ok(...correct, '--key', 'correct-1'), /done before under this key/)
    assert.match(
      await refused(...correct, '--brand', 'Other', '--key', 'correct-1'),
      /^This idempotency key was used for/,
    )
    assert.deepEqual(await untrusted('7002'), { name: 'Harrow 40', origin: 'CH' })
  })

  it('has its new text stored before the hash is on chain', async () => {
    const { writer } = world.components
    const order: string[] = []
    const metadata: typeof world.components.metadata = {
      ...world.components.metadata,
      put: async (canonical) => {
        const isNew = await world.components.metadata.put(canonical)
        order.push(`stored ${canonical.hash}`)
        return isNew
      },
    }
    const write: typeof writer.write = (request, options) => {
      order.push(`sent ${request.kind === 'setMetadataHash' ? request.metadataHash : request.kind}`)
      return writer.write(request, options)
    }
    const runWatched = commandsOf(world, { metadata, writer: { ...writer, write } })
    assert.equal((await runWatched('asset', 'metadata', '7002', '--brand', 'Watched')).exit, 0)
    assert.match(order.join(), /^stored (0x[0-9a-f]{64}),sent \1$/)
  })

  it('corrects no metadata of an asset that is absent, or without a change', async () => {
    const correct = 'asset metadata 7002'
    assert.equal(await refused('asset metadata 77777 --name x'), 'Asset 77777 does not exist.')
    assert.match(await refused(correct), /^Name what to change: /)
    assert.equal(await refused(`${correct} --brand Watched`), 'Asset 7002 has this metadata already.')
    assert.match(await refused(`${correct} --brand Gr\uFFFDe`), /^Metadata field brand holds U\+FFFD/)
    assert.match(await refused(`${correct} --metadata whole.json --name x`), /not as both/)
    assert.match(await refused(`${correct} --details`, `0x${'0'.repeat(64)}`), /No product details are stored/)
    const lost = await world.write({ kind: 'mint', to: operator?.address ?? '0x', metadataHash: `0x${'7'.repeat(64)}` })
    const id = String(lost.tokenIds[0])
    assert.match(await refused(`asset metadata ${id} --name x`), /is not stored here.*--metadata/)
    await ok(`asset metadata ${id} --metadata whole.json`)
    assert.deepEqual(await untrusted(id), { name: 'Harrow 40', origin: 'CH' })
    await ok('asset mint --id 7003')
    await ok('asset metadata 7003 --name Plain')
    assert.deepEqual(await untrusted('7003'), { name: 'Plain' })
  })

  it('mints with product details, which the hash of the metadata covers', async () => {
    const details = '{"kind":"watch","care":["Keep it dry."]}'
    await writeFile(join(world.settings.DATA_DIR, 'details.json'), details)
    const hash = /^details {6}(0x[0-9a-f]{64})$/.exec(await ok('product details details.json'))?.[1] ?? ''
    const out = await ok('asset mint --name', 'Harrow 38', '--details', hash, '--id', '7001')
    const metadata = /^metadata {5}(0x[0-9a-f]{64})$/m.exec(out)?.[1] ?? ''
    const stored = await (await world.get(`/api/metadata/${metadata}`)).text()
    assert.equal(stored, `{"details":"${hash}","name":"Harrow 38"}`)
    assert.equal(await (await world.get(`/api/metadata/${hash}`)).text(), '{"care":["Keep it dry."],"kind":"watch"}')
    const { untrusted } = (await (await world.get('/api/asset/7001')).json()) as { untrusted: object }
    assert.deepEqual(Object.keys(untrusted), ['_warning', 'name'])
    assert.match(await refused('asset mint --details', `0x${'0'.repeat(64)}`), /No product details are stored/)
    await writeFile(join(world.settings.DATA_DIR, 'bad.json'), '{"kind":"watch","kind":"bag"}')
    assert.match(await refused('product details bad.json'), /names a member twice/)
    await writeFile(join(world.settings.DATA_DIR, 'bad.json'), '{"care":"Keep it dry."}')
    assert.match(await refused('product details bad.json'), /^Product details, field care: /)
  })

  it('keeps elements of access tiers out of the public details', async () => {
    const details = '{"care":["Wipe it."],"facility":{"name":"Hidden Mill"},"access":{"authority":["facility"]}}'
    await writeFile(join(world.settings.DATA_DIR, 'tiers.json'), details)
    const { hash, restricted } = JSON.parse(await ok('product details tiers.json --json')) as {
      hash: string
      restricted: Record<'interest' | 'authority', string>
    }
    assert.deepEqual(await (await world.get(`/api/metadata/${hash}`)).json(), { care: ['Wipe it.'], restricted })
    assert.equal((await world.get(`/api/metadata/${restricted.authority}`)).status, 404)
    const { text: key, hash: keyHash } = newApiKey()
    await world.components.apiKeys.create({ hash: keyHash, name: 'customs', scopes: ['passport:authority'] })
    const answer = await world.get(`/api/restricted/${restricted.authority}`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    assert.match(await answer.text(), /Hidden Mill/)
    const lines = (await ok('product details tiers.json')).split('\n')
    assert.deepEqual(
      lines.map((line) => line.replace(/ +0x[0-9a-f]{64}$/, '')),
      ['details', 'interest', 'authority'],
    )
    await writeFile(join(world.settings.DATA_DIR, 'bad.json'), details.replace('["facility"]', '["recall"]'))
    assert.match(await refused('product details bad.json'), /^A path of access begins with model, /)
  })

  it('lists what visitors reported, and closes it', async () => {
    const { differences } = world.components
    assert.equal(await ok('report list'), 'There is no open report.')
    const report = { tokenId: 7n, epoch: 0, tapCounter: 3, role: 'second', note: 'Straight\nstitches.' } as const
    assert.deepEqual([await differences.add(report), await differences.add(report)], ['stored', 'repeated'])
    // A chip that is written anew counts from 1 again.
    assert.equal(await differences.add({ ...report, epoch: 1 }), 'stored')
    for (let tapCounter = 4; tapCounter < 60; tapCounter += 1) await differences.add({ ...report, tapCounter })
    assert.deepEqual(
      [await differences.add({ ...report, tapCounter: 60 }), await differences.add(report)],
      ['full', 'repeated'],
    )
    const listed = await ok('report list --token 7 --last 1')
    assert.match(
      listed,
      /^id +at +asset +tap +visitor +note\n *\d+ +\d{4}-\d\d-\d\dT\d\d:\d\dZ +7 +51 +second +Straight stitches\.$/,
    )
    const rows = JSON.parse(await ok('report list --json')) as { id: string; tokenId: string }[]
    assert.equal(rows.length, 50)
    assert.equal(await ok('report close', ...rows.map(({ id }) => id)), 'closed       50')
    assert.match(await refused('report close 1'), /There is no such report/)
    assert.match(await refused('report close one'), /in digits/)
  })

  it('stores the pictures of product details, written anew, and refuses what is none', async () => {
    const folder = world.settings.DATA_DIR
    const drawn = sharp({ create: { width: 80, height: 60, channels: 3, background: '#a52' } })
    await writeFile(join(folder, 'front.png'), await drawn.png().toBuffer())
    await writeFile(join(folder, 'pictured.json'), '{"picture":{"file":"front.png","alt":"From the front."}}')
    const hash = /^details {6}(0x[0-9a-f]{64})$/.exec(await ok('product details pictured.json'))?.[1] ?? ''
    const { picture } = (await (await world.get(`/api/metadata/${hash}`)).json()) as { picture: Record<string, string> }
    const { webp, avif, jpeg, ...rest } = picture
    assert.deepEqual(rest, { width: 80, height: 60, alt: 'From the front.' })
    for (const form of [webp, avif, jpeg]) assert.equal((await world.get(`/assets/pictures/${form}`)).status, 200)
    const { alt: _alt, ...named } = picture
    assert.deepEqual(JSON.parse(await ok('product picture front.png')), named)
    await writeFile(join(folder, 'drawn.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    assert.match(await refused('product picture drawn.svg'), /^drawn\.svg is no picture that can be stored: /)
    execFileSync('mkfifo', [join(folder, 'pipe.png')])
    for (const none of ['none.png', 'pipe.png', '.'])
      assert.match(await refused('product picture', none), /There is no file/)
    await writeFile(join(folder, 'large.png'), new Uint8Array(20_000_001))
    assert.match(await refused('product picture large.png'), /large\.png has more than 20 MB\.$/m)
    const unknown = JSON.stringify({ picture: { webp: 'ab'.repeat(32), width: 1, height: 1 } })
    await writeFile(join(folder, 'pictured.json'), unknown)
    assert.match(await refused('product details pictured.json'), /^No picture is stored under (?:ab){32}/)
  })

  it('goes from MINTED to CLAIMED, by a tap and the consent of the claimant', async () => {
    assert.match(await refused('asset activate 1'), /Asset 1 is MINTED/)
    const bind = `asset bind 1 --uid ${uid} --batch b --gtin 9520001000010 --serial H38-1`
    assert.match(await ok(bind, '--dry-run'), /would bind tag 04A1B2C3D4E5F6 to asset 1/)
    assert.match(await ok(bind), /asset {8}1 {2}BOUND\ntag {10}04A1B2C3D4E5F6, batch b, item 09520001000010 H38-1/)
    assert.match(await ok('asset activate 1'), /asset {8}1 {2}ACTIVATED/)

    const url = await tap()
    const claim = `asset claim 1 --demo-account 2 --tap ${url}`
    assert.match(await ok(claim, '--dry-run'), /would make asset 1 the claimant's, for at most \d+ gas/)
    assert.match(await ok(claim), /asset {8}1 {2}CLAIMED/)
    assert.match(await refused('asset claim 1 --demo-account 2 --tap', await tap()), /Asset 1 is CLAIMED/)
    assert.match(await refused('asset recycle 1'), /Only the owner of asset 1 may do this/)
    assert.equal(
      await refused('asset metadata 1 --name x'),
      'Asset 1 is CLAIMED: metadata can be changed until the asset is claimed, and not while it is flagged.',
    )
  })

  it('takes a consent that was signed elsewhere over what --prepare prints', async () => {
    const other = '04A1B2C3D4E5F7'
    await ok(`asset bind 2 --uid ${other} --batch b`)
    await ok('asset activate 2')
    const claimant = consumer?.address ?? ''
    const prepared = await run(`asset claim 2 --claimant ${claimant} --deadline 4102444800 --prepare`)
    assert.equal(prepared.exit, 0)
    const typed = JSON.parse(prepared.out) as { message: { nonce: number } }
    const consent = (await consumer?.signTypedData(typed as never)) ?? ''
    const url = await ok(`tag emulate --batch b --uid ${other} --tap`)
    const claim = `asset claim 2 --claimant ${claimant} --deadline 4102444800 --tap ${url} --consent`
    assert.match(await refused(claim, `0x${'11'.repeat(65)}`), /The signature does not fit/)
    assert.match(await ok(claim, consent), /asset {8}2 {2}CLAIMED/)
  })

  it('needs for a claim a tap of this very tag, and consent', async () => {
    const url = await tap()
    const claimant = consumer?.address ?? ''
    assert.match(await refused(`asset claim 3 --claimant ${claimant} --tap`, url), /needs the claimant’s consent/)
    assert.match(await refused('asset claim 3 --demo-account 2'), /needs a tap/)
    assert.match(await refused('asset claim 3 --demo-account 2 --tap', url), /bound to asset 1, not to 3/)
    const altered = url.replace(/cmac=.{16}/, 'cmac=0011223344556677')
    assert.match(await refused('asset claim 3 --demo-account 2 --tap', altered), /counterfeit/)
    assert.match(await refused('asset claim 3 --demo-account 1 --tap', url), /2 to 9/)
    const dry = (...flags: string[]) => refused('asset claim 3 --demo-account 2 --dry-run', ...flags)
    assert.match(await dry('--tap', altered), /^not verified: counterfeit \(bad_cmac\)/)
    assert.match(await dry('--tap', url), /The tag is not bound to asset 3/)
    assert.match(await dry('--tap', 'https://a.example/?picc=00'), /--tap needs an address with picc/)
    assert.match(await dry('--tap', url, '--claimant', operator?.address ?? ''), /consents for itself only/)
    assert.match(await refused('asset claim 3 --tap', url), /Give the new owner: --claimant with an address/)
  })

  it('says so where a tag was bound and another came first here, or where a transaction is not mined', async () => {
    const { tags, operations } = world.components
    const importTag: typeof tags.importTag = async () => ({ outcome: 'refused', because: 'token_taken' })
    const bind = (id: bigint, tag: string) => `asset bind ${id} --uid ${tag} --batch b`
    const overtaken = await commandsOf(world, { tags: { ...tags, importTag } })(
      bind(await world.mint(), '04B1B2C3D4E5F7'),
    )
    assert.deepEqual(
      [overtaken.exit, overtaken.err],
      [1, 'touchstone: The tag is bound on chain, but the registry of tags refused it (token_taken).'],
    )
    const id = await world.mint()
    const chain = { rpc: world.rpc, contract: world.contract, chainId: 84532, local: true, operations }
    const writer = createWriter({ ...chain, keys, log: createLog(() => {}), receiptWaitMs: 500 })
    await world.rpc('evm_setAutomine', [false])
    const late = await commandsOf(world, { writer })(bind(id, '04B1B2C3D4E5F8'), '--json')
    const { status, key } = JSON.parse(late.out) as { status: string; key: string }
    assert.deepEqual([late.exit, status], [1, 'PENDING'])
    assert.equal(late.err, `touchstone: not mined yet. Repeat the command with --key ${key} to see its outcome.`)
    assert.equal(await tags.tagOfToken(id), undefined)
    await world.rpc('evm_setAutomine', [true])
    await world.rpc('anvil_mine', ['0x1'])
    assert.match(await ok(bind(id, '04B1B2C3D4E5F8'), '--key', key), /BOUND\ntag +04B1B2C3D4E5F8, batch b$/)
    assert.equal((await tags.tagOfToken(id))?.batchId, 'b')
  })

  it('is of a database that no command reverts or distributes while its service runs', async () => {
    for (const flags of [['--undo', '--yes'], ['--distribute']])
      assert.match(await refused('migrate', ...flags), /^A service runs on this/)
    assert.match(await refused('migrate --shards 4'), /--shards goes with --distribute/)
  })

  it('is flagged, seen as flagged, and resolved to where it was', async () => {
    assert.match(
      await ok('asset flag 1 --reason stolen,stolen-confirmed --note', 'Police report 2026-1187'),
      /asset {8}1 {2}FLAGGED \(stolen, stolen-confirmed\)\nnote {9}0x[0-9a-f]{64}/,
    )
    assert.match(await refused('asset flag 1 --reason stolen'), /already has these flags/)
    assert.match(await ok('asset resolve 1 --reason stolen'), /FLAGGED \(stolen-confirmed\)/)
    assert.match(await ok('asset resolve 1 --reason all'), /asset {8}1 {2}CLAIMED$/)
    assert.match(await refused('asset resolve 1 --reason all'), /has no reports/)
    assert.match(await ok('asset flag 1 --reason tamper'), /CLAIMED \(tamper\)/)
    assert.match(await refused('asset flag 1 --reason tamper,lost'), /a command of its own/)
    assert.match(await refused('asset flag 3 --reason lost'), /Asset 3 is MINTED/)
  })

  it('does a claim once under a key, also when the tap has expired', async () => {
    const other = '04A1B2C3D4E5F8'
    await ok(`asset bind 4 --uid ${other} --batch b`)
    await ok('asset activate 4')
    const url = await ok(`tag emulate --batch b --uid ${other} --tap`)
    const claim = `asset claim 4 --tap ${url} --key claim-4 --demo-account`
    const [transaction = ''] = (await ok(claim, '2')).split('\n')
    const again = `${transaction}  (done before under this key)\n`
    assert.ok((await ok(claim, '2')).startsWith(again))
    await world.components.database.query("update tap set first_seen = first_seen - interval '1 hour'")
    assert.ok((await ok(claim, '2')).startsWith(again))
    assert.match(await refused(claim, '3'), /^This idempotency key was used for another request/)
    assert.match(await refused(claim, '2', '--deadline', '4102444800'), /^This idempotency key was used for another/)
  })

  it('resolves all flags once under a key, and leaves those that came later', async () => {
    await ok('asset flag 4 --reason lost')
    const resolve = 'asset resolve 4 --reason all --key resolve-4'
    const [resolved = ''] = (await ok(resolve)).split('\n')
    assert.ok((await ok(resolve)).startsWith(`${resolved}  (done before under this key)\n`))
    await ok('asset flag 4 --reason stolen')
    assert.match(await ok(resolve), /done before under this key\)\n[^]*asset {8}4 {2}FLAGGED \(stolen\)$/)
    assert.match(await refused(resolve, '--note', 'Found'), /^This idempotency key was used for another request/)
  })

  it('is recycled for ever', async () => {
    assert.match(await ok('asset recycle 3'), /RECYCLED/)
    assert.match(await refused('asset activate 3'), /RECYCLED/)
  })

  it('is shown without its owner, unless one asks', async () => {
    const shown = await ok('asset show 1')
    assert.match(shown, /^state {9}CLAIMED \(tamper\)$/m)
    assert.match(shown, /^item {10}09520001000010 H38-1$/m)
    assert.match(shown, /^tag here {6}04A1B2C3D4E5F6, batch b, epoch 0, last tap \d+$/m)
    const address = consumer?.address.toLowerCase() ?? ''
    assert.ok(!shown.toLowerCase().includes(address))
    assert.ok((await ok('asset show 1 --owner')).toLowerCase().includes(address))
    assert.equal((JSON.parse(await ok('asset show 1 --json')) as { token_id: string }).token_id, '1')
    assert.match(await refused('asset show 77'), /Asset 77 does not exist/)
  })

  it('has a history back to its minting, without accounts unless one asks', async () => {
    const history = await ok('asset history 1')
    const steps = history.match(/StateChanged from=\w+ to=\w+/g)?.toReversed()
    assert.deepEqual(steps, [
      'StateChanged from=NONE to=MINTED',
      'StateChanged from=MINTED to=BOUND',
      'StateChanged from=BOUND to=ACTIVATED',
      'StateChanged from=ACTIVATED to=CLAIMED',
      'StateChanged from=CLAIMED to=FLAGGED',
      'StateChanged from=FLAGGED to=CLAIMED',
    ])
    assert.match(history, /FlagsChanged flags=stolen, stolen-confirmed reasonHash=0x/)
    assert.match(history, /\n\d+ events up to block \d+, back to the minting\.$/)
    assert.doesNotMatch(history, /0x[0-9a-fA-F]{40}(?![0-9a-fA-F])/)
    const accounts = await ok('asset history 1 --accounts')
    assert.ok(accounts.includes(`actor=${operator?.address}`))
    assert.match(await refused('asset history 77'), /Asset 77 does not exist up to block \d+/)
  })

  it('prints JSON where one asks, for every command that has nothing else for programs', async () => {
    const json = async (...argv: string[]) => JSON.parse(await ok(...argv, '--json')) as Record<string, unknown>
    assert.equal((await json('asset mint --name', 'Harrow 39', '--dry-run'))['status'], 'SIMULATED')
    const minted = await json('asset mint --name', 'Harrow 39')
    const [id = ''] = minted['tokenIds'] as string[]
    assert.deepEqual([minted['status'], minted['states']], ['CONFIRMED', [{ tokenId: id, state: 'MINTED' }]])
    assert.match(String(minted['transaction']), /^0x[0-9a-f]{64}$/)
    const { total, events } = (await json('asset history 1')) as { total: number; events: object[] }
    assert.equal(events.length, total)
    assert.match(JSON.stringify(events), /"event":"StateChanged","time":"[^"]+Z","fromState":"NONE","toState":"MINTED"/)
    assert.doesNotMatch(JSON.stringify(events), /"actor"|null/)
    assert.ok((await json('index status'))['indexed'])
    const { out } = await run('index verify --json')
    assert.equal((JSON.parse(out) as { agrees: boolean }).agrees, true)
    assert.ok(((await json('audit list')) as unknown as { act: string }[]).some(({ act }) => act === 'mint'))
    assert.equal((await json('audit verify'))['intact'], true)
    assert.match(String(((await json('audit head'))['head'] as { hash: string }).hash), /^0x/)
    assert.ok(((await json('attest key list')) as unknown as unknown[]).length > 0)
    assert.equal((await json(`privacy erase --uid ${uid}`))['erased'], false)
    assert.deepEqual((await json('migrate --check'))['missing'], [])
    const exported = await run('export products --json')
    const [row = ''] = exported.out.split('\n')
    assert.notEqual(row, '', exported.err)
    assert.deepEqual(Object.keys(JSON.parse(row) as object).slice(0, 3), ['id', 'tag_id', 'name'])
  })
})
