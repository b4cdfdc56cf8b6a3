/**
 * Attestation keys (spec §4.8): their sources, and rotation that keeps old proofs valid. Rotation also runs by hand with `touchstone attest
 * key …`. A contract on chain that accepts their signatures.
 */
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { attestationKeyId, verifyAttestation, type Attested, type Hex } from '@touchstone/verdict'
import { Command } from 'commander'
import { createPublicClient, createWalletClient, encodeDeployData, hexToBytes, http, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import artifact from '../../../../contracts/artifacts/AttestationVerifier.json' with { type: 'json' }
import { attestCommand } from '../../../src/cli/keys/attestation.ts'
import { runWithin, type Session } from '../../../src/cli/session/session.ts'
import { formatError } from '../../../src/cli/session/output.ts'
import { isPublishedAddress, publishedAccounts, publishedKey } from '../../../src/domain/published-accounts.ts'
import { openAttestationKeys, type AttestationKeys, type KeyChange } from '../../../src/payments/attestation/keys.ts'
import { attestedContract, proofBy, walletKeystore, type Proof } from '../../support/attestation.ts'
import type { Database } from '../../../src/db/database.ts'
import { openEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { startTestChain, type TestChain } from '../../support/test-chain.ts'
import { useOpened } from '../../support/opened.ts'

const dataDir = testFolder()
const database: Database = await openEmptyPglite()
after(() => database.close())

describe('attestation keys', () => {
  let clock = 1_795_227_313_000
  const now = () => clock
  let passed = 0
  const secondsLater = (seconds: number) => {
    clock += seconds * 1000
    passed += seconds * 1000
  }
  const openKeys = (more: Partial<Parameters<typeof openAttestationKeys>[0]> = {}) =>
    openAttestationKeys({
      folder: join(dataDir, 'keys'),
      database,
      isPublicKnowledge: isPublishedAddress,
      now,
      ticks: () => passed,
      ...more,
    })

  async function isBelieved(proof: unknown, by: AttestationKeys): Promise<boolean> {
    const keys = await by.published()
    return verifyAttestation(proof, { keys, tokenId: 1042n, contract: attestedContract, now: now() / 1000 }).ok
  }

  it('are made once, and stay for ever', async () => {
    const keys = await openKeys()
    const { address, keyId } = keys.active()
    assert.deepEqual(await keys.published(), [
      { address, keyId, validFrom: clock / 1000, validUntil: null, status: 'active' },
    ])
    secondsLater(60)
    const again = await openKeys()
    assert.equal(again.active().address, address)
    assert.deepEqual(await again.published(), await keys.published())
    assert.ok(await isBelieved(await proofBy(again, now), keys))
  })

  it('follow one another without a gap: announced, active, retired', async () => {
    const keys = await openKeys()
    const elsewhere = await openKeys()
    const old = keys.active()
    const oldProof = await proofBy(keys, now)
    secondsLater(10)
    const next = listed(await keys.add())
    assert.equal(next.status, 'next')
    assert.equal(keys.active().address, old.address)
    secondsLater(10)
    assert.equal(listed(await keys.switchTo(next.keyId)).status, 'active')
    assert.equal(keys.active().address, next.address)
    assert.deepEqual(
      (await keys.published()).map(({ keyId, status, validUntil }) => [keyId, status, validUntil]),
      [
        [old.keyId, 'retired', clock / 1000 + 120],
        [next.keyId, 'active', null],
      ],
    )
    assert.ok((await isBelieved(oldProof, keys)) && (await isBelieved(await proofBy(keys, now), keys)))

    // Another process, with a copy of the folder from before, signs validly until it has read the change.
    assert.equal(elsewhere.active().address, old.address)
    secondsLater(60)
    assert.ok(await isBelieved(await proofBy(elsewhere, now), keys))
    assert.ok((await elsewhere.published()).some(({ status }) => status === 'retired'))
    await assert.rejects(elsewhere.active().sign(`0x${'12'.repeat(32)}`), /may not sign now/)
    assert.equal((await openKeys()).active().address, next.address)
  })

  it('that were stolen count for nothing, and another one takes over at once', async () => {
    const keys = await openKeys()
    const stolen = keys.active()
    const proof = await proofBy(keys, now)
    assert.ok(await isBelieved(proof, keys))
    let aheadMs = 3_600_000
    const elsewhere = await openKeys({ now: () => clock + aheadMs })
    aheadMs = 0 // NTP sets the clock of that machine right
    const revoked = listed(await keys.revoke(stolen.keyId, clock / 1000 - 5))
    secondsLater(2)
    await elsewhere.refresh()
    assert.equal((await elsewhere.published()).find(({ keyId }) => keyId === stolen.keyId)?.status, 'revoked')
    assert.deepEqual([revoked.status, revoked.validUntil], ['revoked', clock / 1000 - 7])
    assert.equal(await isBelieved(proof, keys), false)
    assert.notEqual(keys.active().address, stolen.address)
    assert.ok(await isBelieved(await proofBy(keys, now), keys))
    assert.match(refusal(await keys.revoke(stolen.keyId)), /revoked already/)
    assert.match(refusal(await keys.switchTo(stolen.keyId)), /is revoked: add a new one/)
    assert.notEqual((await openKeys()).active().address, stolen.address)
  })

  it('that another process revoked are noticed within two seconds at a sale, by one statement for all sales', async () => {
    const keys = await openKeys()
    let statements = 0
    const counting: typeof database = {
      ...database,
      query: (...args) => {
        statements += 1
        return database.query(...args)
      },
    }
    const elsewhere = await openKeys({ database: counting })
    const stolen = elsewhere.active()
    statements = 0
    await keys.revoke(stolen.keyId)
    await elsewhere.refresh()
    assert.deepEqual([statements, elsewhere.active().keyId], [0, stolen.keyId])
    secondsLater(2)
    await Promise.all(Array.from({ length: 20 }, () => elsewhere.refresh()))
    assert.equal(statements, 1)
    assert.equal(elsewhere.active().keyId, keys.active().keyId)
    assert.notEqual(keys.active().keyId, stolen.keyId)
  })

  it('made by a clock that was ahead are not switched to, and sign nothing after a switch to another one', async (t) => {
    const own = await openEmptyPglite()
    t.after(() => own.close())
    const options = { database: own, folder: testFolder() }
    const ahead = await openKeys({ ...options, now: () => clock + 3_600_000 })
    const first = ahead.active().keyId
    const announced = listed(await ahead.add()).keyId
    const keys = await openKeys(options)
    assert.match(refusal(await keys.switchTo(announced)), /begins on .*Z.*touchstone attest key add/)
    const { keyId } = listed(await keys.add())
    listed(await keys.switchTo(keyId))
    assert.equal(keys.active().keyId, keyId)
    secondsLater(3_601)
    for (const later of [keys, await openKeys(options)]) assert.equal(later.active().keyId, keyId)
    const statuses = (await keys.published()).map(({ keyId: id, status }) => [id, status])
    assert.deepEqual(Object.fromEntries(statuses), { [first]: 'retired', [announced]: 'next', [keyId]: 'active' })
  })

  it('are announced as long as the list is one that buyers read, and a stolen one gets a successor after that', async (t) => {
    const own = await openEmptyPglite()
    t.after(() => own.close())
    const keys = await openKeys({ database: own, folder: testFolder() })
    await own.query(`insert into attestation_key (address, valid_from, valid_until, status)
      select decode(lpad(to_hex(n), 40, '0'), 'hex'), 0, 1, 'retired' from generate_series(1, 178) n`)
    listed(await keys.add())
    assert.match(refusal(await keys.add()), /^180 keys are listed/)
    listed(await keys.revoke(keys.active().keyId))
    assert.ok(await isBelieved(await proofBy(keys, now), keys))
  })

  it('sign nothing before their time begins, and nothing while they are announced', async () => {
    const privateKey = hexToBytes(generatePrivateKey())
    const early = await openKeys({ privateKey, now: () => clock + 30_000 })
    const keys = await openKeys({ privateKey })
    await assert.rejects(proofBy(keys, now), /signer_unavailable/)
    assert.match(keys.active().cannotSign ?? '', /begins on .*Z.*touchstone attest key add/)
    assert.equal(early.active().cannotSign, undefined)
    assert.equal(await isBelieved(await proofBy(early, () => clock + 30_000), keys), false)
    secondsLater(30)
    assert.ok(await isBelieved(await proofBy(keys, now), keys))

    const announced = privateKeyToAccount(generatePrivateKey())
    listed(await keys.add(announced.address))
    const key = { ...keys.active(), address: announced.address, keyId: attestationKeyId(announced.address) }
    const sign = (hash: Hex) => announced.sign({ hash })
    const proof = await proofBy({ active: () => ({ ...key, sign }) }, now)
    assert.equal(await isBelieved(proof, keys), false)
    listed(await keys.revoke(keys.active().keyId))
  })

  it('say what cannot be done', async () => {
    const keys = await openKeys()
    const { keyId } = keys.active()
    assert.match(refusal(await keys.switchTo(keyId)), /signs already/)
    assert.match(refusal(await keys.retire(keyId)), /signs at the moment/)
    for (const change of [keys.switchTo, keys.retire, keys.revoke])
      assert.match(refusal(await change('attest-0')), /There is no key attest-0/)
    assert.match(refusal(await keys.add(publishedAccounts(1)[0]?.address)), /publicly known/)
    const foreign = listed(await keys.add(privateKeyToAddress(generatePrivateKey())))
    assert.match(refusal(await keys.add(foreign.address)), /listed already/)
    assert.match(refusal(await keys.switchTo(foreign.keyId)), /private half of \S+ is not in \S+keys\.$/)
    assert.equal(listed(await keys.retire(foreign.keyId)).status, 'retired')
    assert.match(refusal(await keys.retire(foreign.keyId)), /is retired already/)
  })

  it('may be configured: announced first, active with the restart, and the old one retired by hand', async () => {
    const privateKeys = [generatePrivateKey(), generatePrivateKey()] as [Hex, Hex]
    const [first, second] = privateKeys.map(attestationIdOf) as [string, string]
    const before_ = await openKeys({ privateKey: hexToBytes(privateKeys[0]) })
    const files = await readdir(join(dataDir, 'keys'))
    assert.equal(before_.active().keyId, first)
    assert.match(refusal(await before_.add()), /announce the next one by its address/)
    assert.equal(listed(await before_.add(privateKeyToAddress(privateKeys[1]))).status, 'next')
    assert.match(refusal(await before_.switchTo(second)), /configure the next one, restart/)
    const proof = await proofBy(before_, now)

    const after_ = await openKeys({ privateKey: hexToBytes(privateKeys[1]) })
    assert.equal(after_.active().keyId, second)
    assert.equal(listed(await after_.retire(first)).status, 'retired')
    assert.ok((await isBelieved(proof, after_)) && (await isBelieved(await proofBy(after_, now), after_)))
    await assert.rejects(
      openKeys({ privateKey: hexToBytes(privateKeys[0]) }),
      /is retired, so its signatures are no longer valid/,
    )
    assert.deepEqual(await readdir(join(dataDir, 'keys')), files)

    listed(await after_.revoke(second))
    await assert.rejects(proofBy(after_, now), /signer_unavailable/)
  })

  it('are refused when they are publicly known, except in a demonstration', async () => {
    const [account] = publishedAccounts(1)
    const privateKey = hexToBytes(publishedKey(0))
    await assert.rejects(openKeys({ privateKey }), /publicly known/)
    assert.equal((await openKeys({ privateKey, demo: true })).active().address, account?.address)
  })

  it('may come from a keystore; what is wrong with one is one sentence without its secrets', async () => {
    const [keystore, password] = [join(dataDir, 'keystore.json'), join(dataDir, 'password')]
    await writeFile(keystore, JSON.stringify(walletKeystore))
    await writeFile(password, 'foobar\nanother line')
    const source = { keystore, keystorePasswordFile: password }
    await assert.rejects(
      openKeys(source),
      /keystore\.json cannot be used: the password is wrong, or the file is damaged\.$/,
    )
    await writeFile(password, '\n')
    assert.equal((await openKeys(source)).active().address.toLowerCase(), `0x${walletKeystore.address}`)
    await assert.rejects(openKeys({ keystore }), /needs ATTESTATION_KEYSTORE_PASSWORD_FILE/)
    await assert.rejects(openKeys({ ...source, privateKey: new Uint8Array(32) }), /Configure one attestation key/)
    await assert.rejects(openKeys({ privateKey: new Uint8Array(32) }), /ATTESTATION_KEY holds no private key/)
  })
})

describe('touchstone attest key', () => {
  const folder = join(dataDir, 'by-hand')
  let keys: AttestationKeys
  before(async () => {
    await database.query('delete from attestation_key')
    keys = await openAttestationKeys({ folder, database, isPublicKnowledge: isPublishedAddress })
  })

  const attest = (...argv: string[]) => attestWith(keys, ...argv)

  async function attestWith(keysOfProcess: AttestationKeys, ...argv: string[]): Promise<string> {
    const lines: string[] = []
    const line = (text: string) => void lines.push(text)
    const io = { out: line, err: line, cwd: folder, signal: new AbortController().signal }
    const program = new Command('touchstone').addCommand(
      attestCommand(
        async (work) =>
          void (await work({ io, store: { database, attestationKeys: async () => keysOfProcess } } as Session)),
      ),
    )
    await runWithin(program, ['attest', 'key', ...argv], io).catch((error: unknown) => line(formatError(error)))
    return lines.join('\n')
  }
  const lineOf = (table: string, keyId: string) => table.split('\n').find((line) => line.startsWith(keyId)) ?? ''

  it('lists, adds, switches, and leaves the old one as retired', async () => {
    const old = keys.active().keyId
    assert.match(lineOf(await attest('list'), old), /^attest-[0-9a-f]{16} +0x[0-9a-fA-F]{40} +active +20.*Z +signs$/)
    const added = await attest('add')
    const next = /^(attest-[0-9a-f]{16}) is announced/.exec(added)?.[1] ?? ''
    assert.match(added, new RegExp(`Then: touchstone attest key switch ${next}$`))
    assert.match(lineOf(await attest('list'), next), / next /)
    assert.equal(await attest('switch', next), `${next} signs from now on. What ${old} signed stays valid.`)
    assert.equal(keys.active().keyId, next)
    const table = await attest('list')
    assert.match(lineOf(table, next), / active .* signs$/)
    assert.match(lineOf(table, old), / retired .*Z +20.*Z$/)
  })

  it('announces a key that is configured elsewhere, and retires it', async () => {
    const added = await attest('add', '--address', '0x1111111111111111111111111111111111111111')
    assert.match(added, /^attest-1111111111111111 is announced.*\nThen configure it, restart/)
    assert.equal(await attest('retire', 'attest-1111111111111111'), 'attest-1111111111111111 is retired.')
  })

  it('revokes a stolen key and goes on with another', async () => {
    const stolen = keys.active().keyId
    const said = await attest('revoke', stolen, '--at', '2026-01-02T03:04:05Z')
    assert.match(said, new RegExp(`^${stolen} is revoked: .*\n${keys.active().keyId} signs from now on\\.$`))
    assert.match(lineOf(await attest('list'), stolen), / revoked .* 2026-01-02T03:04:05Z$/)
  })

  it('makes no key in a process that sells nothing, and lists and revokes the keys of the others', async () => {
    const elsewhere = join(dataDir, 'elsewhere')
    const open = (mayMake: boolean) =>
      openAttestationKeys({ folder: elsewhere, database, isPublicKnowledge: isPublishedAddress, mayMake })
    const other = await open(false)
    const { keyId } = keys.active()
    assert.match(lineOf(await attestWith(other, 'list'), keyId), / active +20.*Z$/)
    assert.match(await attestWith(other, 'add'), /^No key is made here, because this process sells no attestations:/)
    assert.match(await attestWith(other, 'switch', keyId), /^The private half of \S+ is not in \S+elsewhere\.$/)

    await attest('add', '--address', '0x2222222222222222222222222222222222222222')
    const announced = await attestWith(other, 'revoke', 'attest-2222222222222222')
    assert.match(announced, new RegExp(`\\n${keyId} is active: it signs where its private half is\\.$`))
    const last = await attestWith(other, 'revoke', keyId)
    assert.match(last, /\nThe gateway sells nothing until another key is configured and it was restarted\.$/)
    await assert.rejects(readdir(elsewhere), { code: 'ENOENT' })
    assert.equal((await (await open(true)).published()).length, (await other.published()).length + 1)
    await keys.reload()
    await attest('switch', /^(\S+) is announced/.exec(await attest('add'))?.[1] ?? '')
  })

  it('explains in one sentence what cannot be done', async () => {
    const { keyId } = keys.active()
    const cases: [argv: string[], sentence: RegExp][] = [
      [['switch', keyId], /^Key attest-[0-9a-f]{16} signs already\.$/],
      [['retire', keyId], /signs at the moment: switch to another one first\.$/],
      [['revoke', 'attest-0000000000000000'], /^There is no key attest-0{16}\.$/],
      [['switch', '../keys'], /A key is named attest- and 16 hex digits/],
      [['add', '--address', '0x12'], /An address is 0x and 40 hex digits/],
      [['add', '--address', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'], /publicly known/],
      [['revoke', keyId, '--at', '2999-01-01'], /Give a time in the past/],
      [['revoke', keyId, '--at', '5'], /A time is a day such as 2026-01-31, or 2026-01-31T12:00:00Z, in UTC/],
      [['revoke', keyId, '--at', '2026-01-02 03:04'], /A time is a day such as/],
    ]
    for (const [argv, sentence] of cases) assert.match(await attest(...argv), sentence)
  })
})

describe('AttestationVerifier', () => {
  before(() => database.query('delete from attestation_key'))
  const chain = useOpened(startTestChain)

  it('accepts both forms for as long as the key is valid, as the library does', async () => {
    const keys = await openAttestationKeys({
      folder: join(dataDir, 'believed'),
      database,
      isPublicKnowledge: isPublishedAddress,
    })
    const proof = await proofBy(keys)
    const report = verifyAttestation(proof, { keys: await keys.published(), contract: attestedContract })
    assert.ok(report.ok)
    const outcomes = await askContract(chain, { proof, attested: report.attested })
    const flipped = [6, 6, 6] // the signature is that of an unknown key
    assert.deepEqual(outcomes, { unknown: 6, typed: 0, raw: 0, second: 0, flipped, revoked: [8, 8], tooOld: 4 })
  })
})

const abi = parseAbi([
  'struct AssetAttestation { uint256 tokenId; uint8 state; uint8 flags; bool authentic; bool flagged; uint64 blockNumber; bytes32 blockHash; bytes32 ownerCommitment; uint64 issuedAt; }',
  'struct AssetState { uint256 tokenId; uint8 state; uint256 chainId; uint64 timestamp; uint64 blockNumber; bytes32 blockHash; }',
  'constructor(address owner, uint256 assetChainId, address assetRegistry)',
  'function setKey(address signer, uint64 validFrom, uint64 validUntil)',
  'function revokeKey(address signer)',
  'function check(AssetState statement, bytes signature, uint64 maxAge) view returns (uint8)',
  'function checkV2(AssetAttestation statement, bytes signature, uint64 maxAge) view returns (uint8)',
  'function checkRaw(uint256, uint8, uint256, uint64, bytes signature, uint64 maxAge) view returns (uint8)',
])

/** Asks AttestationVerifier about a proof before its key is entered, after that, and after it was revoked. */
async function askContract({ url }: TestChain, { proof, attested }: { proof: Proof; attested: Attested }) {
  const [account] = publishedAccounts(1)
  assert.ok(account !== undefined)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(url) })
  const reader = createPublicClient({ transport: http(url), pollingInterval: 20 })
  const bytecode = artifact.bytecode as Hex
  const args = [account.address, 84532n, attestedContract] as const
  const { contractAddress } = await wallet.sendTransactionSync({ data: encodeDeployData({ abi, bytecode, args }) })
  assert.ok(contractAddress)
  const verifier = { address: contractAddress, abi } as const
  const { tokenId, state, signer } = attested
  const [chainId, timestamp] = [BigInt(attested.chainId), BigInt(attested.timestamp)]
  const { signature, eip712, v2 } = proof.attestation
  const statement = {
    tokenId,
    state,
    chainId,
    timestamp,
    blockNumber: BigInt(attested.blockNumber),
    blockHash: attested.blockHash,
  }
  const check = (maxAge: bigint) =>
    reader.readContract({ ...verifier, functionName: 'check', args: [statement, eip712.signature, maxAge] })

  const { message } = v2
  const facts = { ...message, tokenId, blockNumber: BigInt(message.blockNumber), issuedAt: BigInt(message.issuedAt) }
  const checkV2 = (change: Partial<typeof facts> = {}) =>
    reader.readContract({ ...verifier, functionName: 'checkV2', args: [{ ...facts, ...change }, v2.signature, 300n] })

  const unknown = await check(300n)
  const window = [signer, timestamp - 10n, timestamp + 10n] as const
  await wallet.writeContractSync({ ...verifier, functionName: 'setKey', args: window })
  const typed = await check(300n)
  const rawArgs = [tokenId, state, chainId, timestamp, signature, 300n] as const
  const raw = await reader.readContract({ ...verifier, functionName: 'checkRaw', args: rawArgs })
  const second = await checkV2()
  const flipped = [await checkV2({ flagged: true }), await checkV2({ authentic: false }), await checkV2({ flags: 1 })]
  await wallet.writeContractSync({ ...verifier, functionName: 'revokeKey', args: [signer] })
  const [revoked, revokedV2] = [await check(300n), await checkV2()]
  await reader.request({ method: 'evm_increaseTime' as never, params: [60] as never })
  await reader.request({ method: 'evm_mine' as never })
  return { unknown, typed, raw, second, flipped, tooOld: await check(30n), revoked: [revoked, revokedV2] }
}

function attestationIdOf(privateKey: Hex): string {
  return attestationKeyId(privateKeyToAddress(privateKey))
}

function listed(change: KeyChange) {
  assert.ok(!('refused' in change), 'refused' in change ? change.refused : '')
  return change
}

function refusal(change: KeyChange): string {
  assert.ok('refused' in change, 'it should have been refused')
  return change.refused
}
