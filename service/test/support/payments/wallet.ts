/** Smart wallets of one holder, for tests: deployed by hand (ERC-1271), or by a factory with the first payment (ERC-6492). */
import type { Hex } from '@touchstone/verdict'
import type { ClientEvmSigner } from '@x402/evm'
import {
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  parseAbi,
  serializeErc6492Signature,
  toHex,
} from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import testWallet from '../../../../contracts/artifacts/TestWallet.json' with { type: 'json' }
import testFactory from '../../../../contracts/artifacts/TestWalletFactory.json' with { type: 'json' }

export const factoryCreation = testFactory.bytecode as Hex

/** The creation code of a holder's wallet. */
export const creationOf = (holder: Hex): Hex =>
  encodeDeployData({
    abi: parseAbi(['constructor(address holder)']),
    bytecode: testWallet.bytecode as Hex,
    args: [holder],
  })

/** The address at which a factory deploys a holder's wallet. */
export const predictWallet = (factory: Hex, holder: Hex): Hex =>
  getContractAddress({
    opcode: 'CREATE2',
    from: factory,
    salt: toHex(0, { size: 32 }),
    bytecode: creationOf(holder),
  })

/** Wraps a signature as a client does that does not know whether the wallet is deployed. */
export function wrapSignature(signature: Hex, factory: Hex, holder: Hex): Hex {
  const data = encodeFunctionData({ abi: parseAbi(['function deploy(address)']), args: [holder] })
  return serializeErc6492Signature({ address: factory, data, signature })
}

/** A wallet as a signer of stock clients; with a factory it wraps its signatures. */
export function walletSigner(address: Hex, holder: PrivateKeyAccount, factory?: Hex): ClientEvmSigner {
  return {
    address,
    async signTypedData(message) {
      const signature = await holder.signTypedData(message as Parameters<PrivateKeyAccount['signTypedData']>[0])
      return factory === undefined ? signature : wrapSignature(signature, factory, holder.address)
    },
  }
}
