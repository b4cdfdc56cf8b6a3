/**
 * Runs the Solidity tests against mutants of the contracts. The tests stay compiled: they deploy the code that MUTANT_REGISTRY
 * or MUTANT_VERIFIER holds (World.sol, AttestationVerifier.t.sol).
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { forge } from '../forge.ts'
import { compileSources, type SourceFiles } from './compiler.ts'
import { mutate, mutantsOf, type Mutant } from './mutants.ts'

/** A contract, the files that its mutants are made of, and the tests that must notice them. */
export type Target = Readonly<{ file: string; name: string; files: readonly string[]; tests: string; variable: string }>

export const targets: readonly Target[] = [
  {
    file: 'src/AssetRegistry.sol',
    name: 'AssetRegistry',
    files: ['src/AssetRegistry.sol', 'src/AssetTransfers.sol', 'src/AssetLedger.sol', 'src/Lifecycle.sol'],
    variable: 'MUTANT_REGISTRY',
    tests: '^(Claim|Events|Flags|Lifecycle|Mint|Record|Safeguards|Standards|Transfers)Test$',
  },
  {
    file: 'src/AttestationVerifier.sol',
    name: 'AttestationVerifier',
    files: ['src/AttestationVerifier.sol'],
    variable: 'MUTANT_VERIFIER',
    tests: '^AttestationVerifierTest$',
  },
]

const folder = join(import.meta.dirname, '..')
const packages = join(folder, '../node_modules')

const readSource: SourceFiles = (path) => readFileSync(join(path.startsWith('@') ? packages : folder, path), 'utf8')

export function allMutants(target: Target): Mutant[] {
  return mutantsOf(target, target.files, readSource)
}

/** `killed`: a test failed. `equal`: the code is that of the original. `invalid`: it does not compile. */
export type Fate = 'killed' | 'survived' | 'equal' | 'invalid'

const codes = new Map<string, string | null>()

export async function fateOf(target: Target, mutant: Mutant): Promise<Fate> {
  const { code } = compileSources(target, (path) =>
    path === mutant.file ? mutate(readSource(path), mutant) : readSource(path),
  )
  if (code === null) return 'invalid'
  if (code === originalCode(target)) return 'equal'
  return (await testsFail(target, code)) ? 'killed' : 'survived'
}

/** Throws where the tests fail without a mutant. */
export async function assertTestsPass(target: Target): Promise<void> {
  if (await testsFail(target, originalCode(target) ?? ''))
    throw new Error(`The tests of ${target.name} fail without a mutant: run node contracts/test.ts first.`)
}

async function testsFail({ tests, variable }: Target, code: string): Promise<boolean> {
  // Few fuzz runs: what only one input in a hundred notices is not noticed reliably.
  const env = { [variable]: code, FOUNDRY_FUZZ_RUNS: '32', FOUNDRY_TEST_FAILURES_FILE: '/dev/null' }
  return (await forge(['test', '--offline', '--fail-fast', '--match-contract', tests], env)).failed
}

function originalCode(target: Target): string | null {
  const known = codes.get(target.name) ?? compileSources(target, readSource).code
  codes.set(target.name, known)
  return known
}
