/** The deployments of the registry that this library knows, and the facts that a caller trusts about a contract. */
import type { Hex } from './hex.ts'
import { type Check, undecided } from './report.ts'

/** One deployment, as its publisher announced it; a fact is `null` where it is not published. */
export type Deployment = Readonly<{
  chainId: number
  contract: Hex
  /** keccak256 of the contract's code. An upgradeable proxy has none worth pinning. */
  codeHash: Hex | null
  /** Slot of the mapping that holds the records. */
  recordsSlot: bigint | null
}>

/**
 * Known deployments by name. `base-sepolia` is pinned by default. `local` is the chain of `npm start`: anyone can deploy at its address
 * on another chain, because its deployer's key is public, so it counts only where the caller names it.
 */
export const deployments: Readonly<Record<'base-sepolia' | 'local', Deployment>> = {
  'base-sepolia': {
    chainId: 84532,
    contract: '0x3aDc7EFDb58Ae85483eFf5D4966D916185f31d1D',
    codeHash: null,
    recordsSlot: null,
  },
  local: {
    chainId: 84532,
    contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
    codeHash: '0x63457361c2d8ed183aa8b27713d539930809f9cad8a673839c5c8b4880f22894',
    recordsSlot: 3n,
  },
}

/** Facts about the contract that the caller has from another source than the verdict. */
export type Pins = Readonly<{
  /** A known deployment, by name or in full; the members below go before it. */
  deployment?: keyof typeof deployments | Deployment | undefined
  /** The core contract you trust. Where neither this nor `deployment` is given, the known deployments are pinned. */
  contract?: Hex | undefined
  /** keccak256 of the contract's code, as published for the deployment. Used by proofs; without it the code is not pinned. */
  codeHash?: Hex | undefined
  /** Slot of the mapping that holds the records, for proofs: 3 in the registry. */
  recordsSlot?: bigint | undefined
}>

/** The pins that hold for one contract. */
export type ResolvedPins = Readonly<{ contract: Hex | null; codeHash: Hex | null; recordsSlot: bigint | null }>

/** Merges the caller's pins with the deployment they name, or else with the public one where it has this contract. */
export function resolvePins(contract: Hex, pins: Pins): ResolvedPins {
  const named = typeof pins.deployment === 'string' ? deployments[pins.deployment] : pins.deployment
  const known = named ?? deployments['base-sepolia']
  const trusted = pins.contract ?? named?.contract ?? (isSameHex(contract, known.contract) ? known.contract : null)
  // The facts of a deployment say nothing about another contract.
  const facts = trusted !== null && isSameHex(trusted, known.contract) ? known : null
  return {
    contract: trusted,
    codeHash: pins.codeHash ?? facts?.codeHash ?? null,
    recordsSlot: pins.recordsSlot ?? (facts === null ? 3n : facts.recordsSlot),
  }
}

/** Compares the verdict's contract with the pinned one. An unpinned contract leaves the whole report undecided. */
export function contractCheck(contract: Hex, { contract: trusted }: ResolvedPins): Check {
  if (trusted === null)
    return undecided('contract', contract, 'not pinned: name the contract or the deployment you trust')
  return { field: 'contract', ok: isSameHex(contract, trusted), claimed: contract, found: trusted }
}

/** Returns whether two texts of hex are equal in any case of letters. */
function isSameHex(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}
