/** Compiles the contracts, the same way on every machine: fixed compiler, fixed settings, no metadata in the code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import solc from 'solc'

const root = join(import.meta.dirname, '..')

/** Contract name → source file, relative to this folder. Each has a file in artifacts/. */
export const contractFiles = {
  AssetRegistry: 'src/AssetRegistry.sol',
  AttestationVerifier: 'src/AttestationVerifier.sol',
  CallBatch: 'src/CallBatch.sol',
  Multicall3: 'src/doubles/Multicall3.sol',
  ForeignCore: 'src/doubles/ForeignCore.sol',
  FaultyCore: 'src/doubles/FaultyCore.sol',
  BurningWallet: 'src/doubles/BurningWallet.sol',
  TestWallet: 'src/doubles/TestWallet.sol',
  TestWalletFactory: 'src/doubles/TestWalletFactory.sol',
  TestUsdc: 'src/doubles/TestUsdc.sol',
  TestChannels: 'src/doubles/TestChannels.sol',
  TestCollector: 'src/doubles/TestChannels.sol',
  AgentIdentity: 'src/doubles/AgentIdentity.sol',
  AgentReputation: 'src/doubles/AgentReputation.sol',
} as const

export type ContractName = keyof typeof contractFiles

type Hex = `0x${string}`
export type Artifact = {
  contractName: string
  compiler: string
  abi: unknown[]
  bytecode: Hex
  deployedBytecode: Hex
  immutableReferences: Record<string, { start: number; length: number }[]>
  storageLayout: { storage: { label: string; slot: string; offset: number; type: string }[]; types: unknown }
}

/** The settings of foundry.toml, in the compiler's own words. */
const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  evmVersion: 'cancun',
  metadata: { bytecodeHash: 'none', appendCBOR: false },
}
/** Chosen for one contract only: the compiler would make code of every other one in its imports too. */
const outputs = [
  'abi',
  'evm.bytecode.object',
  'evm.deployedBytecode.object',
  'evm.deployedBytecode.immutableReferences',
  'storageLayout',
]

/**
 * Compiles one contract alone with its imports, so that its artifact does not depend on its neighbours. Throws an Error with the compiler's
 * message for any error or warning.
 */
export function compileContract(name: ContractName): Artifact {
  const file = contractFiles[name]
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: readSource(file) } },
    settings: { ...settings, outputSelection: { [file]: { [name]: outputs } } },
  }
  const output: CompilerOutput = JSON.parse(solc.compile(JSON.stringify(input), { import: importSource }))
  const faults = output.errors ?? []
  if (faults.length > 0) throw new Error(faults.map((fault) => fault.formattedMessage).join('\n'))
  const contract = output.contracts[file]?.[name]
  if (contract === undefined) throw new Error(`${file} has no contract ${name}.`)
  const { abi, evm, storageLayout } = contract
  return {
    contractName: name,
    compiler: solc.version(),
    abi,
    bytecode: `0x${evm.bytecode.object}`,
    deployedBytecode: `0x${evm.deployedBytecode.object}`,
    immutableReferences: evm.deployedBytecode.immutableReferences,
    storageLayout,
  }
}

type CompilerOutput = {
  errors?: { formattedMessage: string }[]
  contracts: Record<string, Record<string, CompiledContract>>
}

type CompiledContract = Pick<Artifact, 'abi' | 'storageLayout'> & {
  evm: {
    bytecode: { object: string }
    deployedBytecode: { object: string; immutableReferences: Artifact['immutableReferences'] }
  }
}

function importSource(path: string): { contents: string } | { error: string } {
  try {
    return { contents: readSource(path) }
  } catch {
    return { error: `${path} could not be read.` }
  }
}

/** Packages come from node_modules, everything else from this folder. */
function readSource(path: string): string {
  const folder = path.startsWith('@') ? join(root, 'node_modules') : import.meta.dirname
  return readFileSync(join(folder, path), 'utf8')
}
