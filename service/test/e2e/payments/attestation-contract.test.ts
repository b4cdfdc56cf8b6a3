/** What the gateway signs, a contract on chain believes (spec §4.8): AttestationVerifier and the library agree on both forms. */
import { openEmptyPglite } from '../../support/database/pglite.ts'
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { verifyAttestation, type Attested, type Hex } from '@touchstone/verdict'
import { createPublicClient, createWalletClient, http, parseAbi } from 'viem'
import { baseSepolia } from 'viem/chains'
import artifact from '../../../../contracts/artifacts/AttestationVerifier.json' with { type: 'json' }
import { isPublishedAddress, publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { startLocalChain, type LocalChain } from '../../../src/chain/devchain/devchain.ts'
import { openAttestationKeys } from '../../../src/payments/attestation/keys.ts'
import { createLog } from '../../../src/lib/log.ts'
import { type Database } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { attestedContract, proofBy, type Proof } from '../../support/attestation.ts'

describe('AttestationVerifier', () => {
  let dataDir: string
  let database: Database
  let chain: LocalChain
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'touchstone-attested-'))
    database = await openEmptyPglite()
    await migrate(database)
    chain = await startLocalChain({ dataDir, log: createLog(() => {}) })
  })
  after(async () => {
    await chain.close()
    await database.close()
    await rm(dataDir, { recursive: true })
  })

  it('believes both forms for as long as the key counts, as the library does', async () => {
    const keys = await openAttestationKeys({
      folder: join(dataDir, 'keys'),
      database,
      isPublicKnowledge: isPublishedAddress,
    })
    const proof = await proofBy(keys)
    const report = verifyAttestation(proof, { keys: keys.published(), contract: attestedContract })
    assert.ok(report.ok)
    const outcomes = await askContract(chain, { proof, attested: report.attested })
    assert.deepEqual(outcomes, { unknown: 6, typed: 0, raw: 0, revoked: 8, tooOld: 4 })
  })
})

const abi = parseAbi([
  'struct AssetState { uint256 tokenId; uint8 state; uint256 chainId; uint64 timestamp; uint64 blockNumber; bytes32 blockHash; }',
  'constructor(address owner, uint256 assetChainId, address assetRegistry)',
  'function setKey(address signer, uint64 validFrom, uint64 validUntil)',
  'function revokeKey(address signer)',
  'function check(AssetState statement, bytes signature, uint64 maxAge) view returns (uint8)',
  'function checkRaw(uint256, uint8, uint256, uint64, bytes signature, uint64 maxAge) view returns (uint8)',
])

/** What AttestationVerifier says of a proof before its key is entered, after that, and after it was revoked. */
async function askContract({ url }: LocalChain, { proof, attested }: { proof: Proof; attested: Attested }) {
  const [account] = publishedAccounts(1)
  assert.ok(account !== undefined)
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(url) })
  const reader = createPublicClient({ transport: http(url), pollingInterval: 20 })
  const bytecode = artifact.bytecode as Hex
  const deployed = await wallet.deployContract({ abi, bytecode, args: [account.address, 84532n, attestedContract] })
  const { contractAddress } = await reader.waitForTransactionReceipt({ hash: deployed })
  assert.ok(contractAddress)
  const verifier = { address: contractAddress, abi } as const
  const { tokenId, state, signer } = attested
  const [chainId, timestamp] = [BigInt(attested.chainId), BigInt(attested.timestamp)]
  const { signature, eip712 } = proof.attestation
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

  const unknown = await check(300n)
  const window = [signer, timestamp - 10n, timestamp + 10n] as const
  const entered = await wallet.writeContract({ ...verifier, functionName: 'setKey', args: window })
  await reader.waitForTransactionReceipt({ hash: entered })
  const typed = await check(300n)
  const rawArgs = [tokenId, state, chainId, timestamp, signature, 300n] as const
  const raw = await reader.readContract({ ...verifier, functionName: 'checkRaw', args: rawArgs })
  const hash = await wallet.writeContract({ ...verifier, functionName: 'revokeKey', args: [signer] })
  await reader.waitForTransactionReceipt({ hash })
  const revoked = await check(300n)
  await reader.request({ method: 'evm_increaseTime' as never, params: [60] as never })
  await reader.request({ method: 'evm_mine' as never })
  return { unknown, typed, raw, tooOld: await check(30n), revoked }
}
