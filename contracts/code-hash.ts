/**
 * The code hash that a deployment of AssetRegistry must have, from the committed artifact alone. Its code holds
 * the signing domain (EIP-712), so each chain and address has a hash of its own; storage proofs are checked against it.
 *
 * `node_modules/.bin/node contracts/code-hash.ts <chain id> <address> [1]` prints it; `1` for a deployment of version 1.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { concatHex, encodeAbiParameters, isAddress, keccak256, numberToHex, pad, stringToHex, toHex } from 'viem/utils'
import type { Artifact } from './solidity.ts'

const domain = { name: 'AssetRegistry', version: '1' }
const domainType = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'

/** Version 1 is kept as it was deployed: its sources are in the history of this repository. */
const artifactOf = { '1': 'AssetRegistryV1.json', '2': 'AssetRegistry.json' } as const

if (import.meta.main) {
  const [chainId = '', address = '', version = '2'] = process.argv.slice(2)
  if (/^[0-9]+$/.test(chainId) && isAddress(address, { strict: false }) && isVersion(version)) {
    process.stdout.write(`${registryCodeHash({ chainId: BigInt(chainId), address }, version)}\n`)
  } else {
    process.stderr.write(
      'Give a decimal chain id and an address, and 1 for version 1: node contracts/code-hash.ts 84532 0x…\n',
    )
    process.exitCode = 1
  }
}

function isVersion(text: string): text is keyof typeof artifactOf {
  return Object.hasOwn(artifactOf, text)
}

/** keccak256 of the runtime code at `address` on `chainId`, as eth_getProof reports it. */
export function registryCodeHash(
  { chainId, address }: { chainId: bigint; address: Hex },
  version: keyof typeof artifactOf = '2',
): Hex {
  const artifact: Artifact = JSON.parse(
    readFileSync(join(import.meta.dirname, 'artifacts', artifactOf[version]), 'utf8'),
  )
  return keccak256(withImmutables(artifact, immutables(chainId, address)))
}

/** OpenZeppelin's EIP712 declares these seven, in this order. */
function immutables(chainId: bigint, address: Hex): Hex[] {
  const [hashedName, hashedVersion] = [keccak256(toHex(domain.name)), keccak256(toHex(domain.version))]
  const separator = encodeAbiParameters(
    [{ type: 'bytes32' }, { type: 'bytes32' }, { type: 'bytes32' }, { type: 'uint256' }, { type: 'address' }],
    [keccak256(toHex(domainType)), hashedName, hashedVersion, chainId, address],
  )
  return [
    keccak256(separator),
    numberToHex(chainId, { size: 32 }),
    pad(address),
    hashedName,
    hashedVersion,
    shortString(domain.name),
    shortString(domain.version),
  ]
}

/** Text in the upper bytes, its length in the lowest (OpenZeppelin ShortStrings). */
function shortString(text: string): Hex {
  return concatHex([stringToHex(text, { size: 31 }), numberToHex(text.length, { size: 1 })])
}

/** The compiler leaves zeros where the constructor writes, and numbers the immutables in the order of declaration. */
function withImmutables({ deployedBytecode, immutableReferences }: Artifact, values: Hex[]): Hex {
  const places = Object.entries(immutableReferences).toSorted(([a], [b]) => Number(a) - Number(b))
  if (places.length !== values.length) throw new Error('The artifact has other immutables than EIP712 declares.')
  const code = Buffer.from(deployedBytecode.slice(2), 'hex')
  for (const [index, [, references]] of places.entries()) {
    for (const { start } of references) code.write(values[index]?.slice(2) ?? '', start, 'hex')
  }
  return `0x${code.toString('hex')}`
}
