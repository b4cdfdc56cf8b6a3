/** What a gateway sells, made by another hand than the library's: encoded, hashed and signed by viem. */
import { encodeAbiParameters, keccak256 } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { attestationKeyId, lifecycleStates, type StateCode } from '../src/index.ts'

export const gateway = privateKeyToAccount(generatePrivateKey())
export const stranger = privateKeyToAccount(generatePrivateKey())
export const contract = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
export const timestamp = 1_795_227_313

type Sale = { tokenId?: bigint; state?: StateCode; chainId?: number; account?: typeof gateway }

/** The parsed body of a paid answer. */
export async function sold({ tokenId = 1042n, state = 3, chainId = 84532, account = gateway }: Sale = {}) {
  const blockHash = `0x${'ab'.repeat(32)}` as const
  const blockNumber = 31_337_042
  const words = [{ type: 'uint256' }, { type: 'uint8' }, { type: 'uint256' }, { type: 'uint64' }] as const
  const digest = keccak256(encodeAbiParameters(words, [tokenId, state, BigInt(chainId), BigInt(timestamp)]))
  const domain = { name: 'Touchstone', version: '1', chainId, verifyingContract: contract } as const
  const types = {
    AssetState: [
      { name: 'tokenId', type: 'uint256' },
      { name: 'state', type: 'uint8' },
      { name: 'chainId', type: 'uint256' },
      { name: 'timestamp', type: 'uint64' },
      { name: 'blockNumber', type: 'uint64' },
      { name: 'blockHash', type: 'bytes32' },
    ],
  } as const
  const message = { tokenId: String(tokenId), state, chainId, timestamp }
  const typedMessage = { ...message, blockNumber, blockHash }
  const typedSignature = await account.signTypedData({
    domain,
    types,
    primaryType: 'AssetState',
    message: {
      ...typedMessage,
      tokenId,
      chainId: BigInt(chainId),
      timestamp: BigInt(timestamp),
      blockNumber: BigInt(blockNumber),
    },
  })
  return {
    version: '1',
    assetId: String(tokenId),
    chain: 'base-sepolia',
    state: lifecycleStates[state],
    state_code: state,
    authentic: state >= 1 && state <= 4,
    flagged: state === 5,
    chainRef: {
      chain_id: chainId,
      contract,
      token_id: String(tokenId),
      block_number: blockNumber,
      block_hash: blockHash,
    },
    attestation: {
      message,
      encoding: 'abi.encode(uint256,uint8,uint256,uint64)',
      digest,
      signature: await account.sign({ hash: digest }),
      signer: account.address,
      keyId: attestationKeyId(account.address),
      eip712: { domain, types, primaryType: 'AssetState', message: typedMessage, signature: typedSignature },
    },
    payment: { success: true, transaction: `0x${'cd'.repeat(32)}`, payer: stranger.address, network: 'base-sepolia' },
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
}
