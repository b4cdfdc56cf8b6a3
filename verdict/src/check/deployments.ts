/** The deployments of the registry that this library names, and the facts that a caller trusts about a contract. */
import type { Hex } from '../lib/hex.ts'
import { askedTokenId } from '../rules/token-id.ts'
import { verdictChainId } from '../rules/verdict.ts'
import type { Claim } from './claim.ts'
import { type Check, compare, undecided } from './report.ts'

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
 * on another chain, because its deployer's key is public, so it counts only where the caller names it. `local-v1` is that chain where an
 * earlier release made it, with version 1 of the contract.
 */
export const deployments: Readonly<Record<'base-sepolia' | 'local' | 'local-v1', Deployment>> = {
  'base-sepolia': {
    chainId: 84532,
    contract: '0x3aDc7EFDb58Ae85483eFf5D4966D916185f31d1D',
    codeHash: null,
    recordsSlot: null,
  },
  local: {
    chainId: 84532,
    contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
    codeHash: '0xd5c88dd6f37ded425ba40a7032df0461c1c9f5e396baa891083c02c84ff42c0f',
    recordsSlot: 3n,
  },
  'local-v1': {
    chainId: 84532,
    contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
    codeHash: '0x63457361c2d8ed183aa8b27713d539930809f9cad8a673839c5c8b4880f22894',
    recordsSlot: 3n,
  },
}

/** Facts that the caller has from another source than the verdict: the token asked about, and the contract. */
export type Pins = Readonly<{
  /** The token you asked about. If left out, the token of the verdict is not checked. */
  tokenId?: bigint | string | undefined
  /** A known deployment, by name or in full. `codeHash` and `recordsSlot` below go before its own. */
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

/**
 * Merges the caller's pins with the deployment they name, or else with the public one where it has this contract. Throws a `TypeError` for
 * pins that contradict each other.
 */
export function resolvePins(contract: Hex, pins: Pins): ResolvedPins {
  const named = deploymentOf(pins)
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

function deploymentOf({ deployment, contract }: Pins): Deployment | undefined {
  if (typeof deployment === 'string' && !Object.hasOwn(deployments, deployment))
    throw new TypeError(`Name a known deployment: ${Object.keys(deployments).join(', ')}.`)
  const named = typeof deployment === 'string' ? deployments[deployment] : deployment
  if (named !== undefined && named.chainId !== verdictChainId)
    throw new TypeError(`The deployment is not on chain ${verdictChainId}, of which verdicts speak.`)
  if (named !== undefined && contract !== undefined && !isSameHex(contract, named.contract))
    throw new TypeError('The pins name two different contracts: give the deployment or the contract.')
  return named
}

/** Compares the verdict's token and contract with the pinned ones. An unpinned contract leaves the whole report undecided. */
export function pinChecks({ tokenId, contract }: Claim, { tokenId: asked }: Pins, trusted: ResolvedPins): Check[] {
  const token = asked === undefined ? [] : [compare('token asked for', String(tokenId), askedTokenId(asked))]
  if (trusted.contract === null)
    return [...token, undecided('contract', contract, 'not pinned: name the contract or the deployment you trust')]
  const ok = isSameHex(contract, trusted.contract)
  return [...token, { field: 'contract', ok, claimed: contract, found: trusted.contract }]
}

/** Returns whether two texts of hex are equal in any case of letters. */
function isSameHex(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}
