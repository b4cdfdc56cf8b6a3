/**
 * Runs the Solidity tests against mutants of the contracts. The tests stay compiled: they deploy the code that MUTANT_REGISTRY
 * or MUTANT_VERIFIER holds (World.sol, AttestationVerifier.t.sol).
 */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { forge } from '../../../contracts/forge.ts'
import { type Fate, mutate, type Mutant, type Target } from '../mutant.ts'
import { creationCode, type SourceFiles } from './compiler.ts'
import { mutantsOf } from './mutants.ts'

/**
 * Names a contract, the files of its mutants, and the groups of tests that must notice them. The quickest group comes
 * first.
 */
type Contract = Readonly<{
  file: string
  name: string
  files: readonly string[]
  tests: readonly string[]
  variable: string
}>

const contracts: readonly Contract[] = [
  {
    file: 'src/AssetRegistry.sol',
    name: 'AssetRegistry',
    files: ['src/AssetRegistry.sol', 'src/AssetTransfers.sol', 'src/AssetLedger.sol', 'src/Lifecycle.sol'],
    variable: 'MUTANT_REGISTRY',
    tests: ['^(Claim|Events|Flags|Mint|Record|Safeguards|Standards|Transfers)Test$', '^LifecycleTest$'],
  },
  {
    file: 'src/AttestationVerifier.sol',
    name: 'AttestationVerifier',
    files: ['src/AttestationVerifier.sol'],
    variable: 'MUTANT_VERIFIER',
    tests: ['^AttestationVerifierTest$'],
  },
]

const root = join(import.meta.dirname, '../../..')
const folder = join(root, 'contracts')

export const contractsTarget: Target = {
  name: 'contracts',
  lowestScore: 95,
  mutants: () => contracts.flatMap((contract) => mutantsOf(contract, contract.files, readSource).map(fromRoot)),
  inputs: () =>
    globSync(['foundry.toml', 'src/**/*.sol', 'test/**/*.sol'], { cwd: folder }).map((path) => join('contracts', path)),
  prepare: async () => {
    for (const contract of contracts)
      if (await testsFail(contract, originalCode(contract) ?? ''))
        throw new Error(`The tests of ${contract.name} fail without a mutant: run npm run test:contracts first.`)
  },
  fateOf,
}

async function fateOf(mutant: Mutant): Promise<Fate> {
  const file = relative('contracts', mutant.file)
  const contract = contracts.find(({ files }) => files.includes(file))
  if (contract === undefined) throw new Error(`No contract is tested with ${mutant.file}.`)
  const code = creationCode(contract, (path) => {
    const source = readSource(path)
    return path === file ? mutate(source, mutant) : source
  })
  if (code === null) return 'invalid'
  if (code === originalCode(contract)) return 'equal'
  return (await testsFail(contract, code)) ? 'killed' : 'survived'
}

async function testsFail({ tests, variable }: Contract, code: string): Promise<boolean> {
  // Few fuzz runs: what only one input in a hundred notices is not noticed reliably.
  const env = { [variable]: code, FOUNDRY_FUZZ_RUNS: '32', FOUNDRY_TEST_FAILURES_FILE: '/dev/null' }
  for (const group of tests)
    if ((await forge(['test', '--offline', '--fail-fast', '--match-contract', group], env)).failed) return true
  return false
}

const codes = new Map<string, string | null>()

function originalCode(contract: Contract): string | null {
  const known = codes.get(contract.name) ?? creationCode(contract, readSource)
  codes.set(contract.name, known)
  return known
}

function readSource(path: string): ReturnType<SourceFiles> {
  return readFileSync(join(path.startsWith('@') ? join(root, 'node_modules') : folder, path), 'utf8')
}

function fromRoot(mutant: Mutant): Mutant {
  return { ...mutant, file: join('contracts', mutant.file) }
}
