/** Why a write did not happen, as a code to branch on and a sentence to show (spec §4.9 `errors`). No address is ever named. */
import { lifecycleStates } from '@touchstone/verdict'
import type { Hex } from '@touchstone/verdict'
import { decodeErrorResult } from 'viem'
import { assetRegistryAbi } from './abi.ts'

type ContractError = Extract<(typeof assetRegistryAbi)[number], { type: 'error' }>['name']
/** The error's first two values as text; none has more that is worth telling. */
type Arguments = readonly [string, string]

/** One entry for each error of the contract: the compiler asks for a new one when the contract gets another. */
const sentences = {
  AssetNotFound: ['ASSET_NOT_FOUND', ([tokenId]) => `Asset ${tokenId} does not exist.`],
  WrongState: [
    'WRONG_STATE',
    ([tokenId, state]) =>
      `Asset ${tokenId} is ${lifecycleStates[Number(state)] ?? 'in an unknown state'}; this step does not lead from there.`,
  ],
  TokenIdRefused: ['TOKEN_ID_REFUSED', () => 'This token id is reserved and cannot be minted.'],
  TokenIdTaken: ['TOKEN_ID_TAKEN', ([tokenId]) => `Asset ${tokenId} already exists.`],
  ZeroAddress: ['ZERO_ADDRESS', () => 'An address is needed where none was given.'],
  ZeroTag: ['ZERO_TAG', () => 'A tag is needed where none was given.'],
  TagTaken: [
    'TAG_TAKEN',
    ([, tokenId]) => `This tag is already bound to asset ${tokenId}; a tag serves one asset for ever.`,
  ],
  NotOwner: ['NOT_OWNER', ([tokenId]) => `Only the owner of asset ${tokenId} may do this.`],
  NotRecipient: [
    'NOT_RECIPIENT',
    ([tokenId]) => `Only the recipient of the pending transfer of asset ${tokenId} may accept it.`,
  ],
  NotTransferParty: [
    'NOT_TRANSFER_PARTY',
    ([tokenId]) => `Only the owner or the recipient may cancel the pending transfer of asset ${tokenId}.`,
  ],
  InvalidFlags: ['INVALID_FLAGS', () => 'The flags hold no bit, or a bit without a meaning.'],
  FlagsAlreadySet: ['FLAGS_ALREADY_SET', ([tokenId]) => `Asset ${tokenId} already has these flags.`],
  FlagsNotSet: ['FLAGS_NOT_SET', ([tokenId]) => `Asset ${tokenId} does not have these flags.`],
  FlagsNotAllowed: ['FLAGS_NOT_ALLOWED', () => 'The operator key may not change these flags.'],
  NoPendingTransfer: ['NO_PENDING_TRANSFER', ([tokenId]) => `Asset ${tokenId} has no pending transfer.`],
  TransferPending: [
    'TRANSFER_PENDING',
    ([tokenId]) => `Asset ${tokenId} has a pending transfer; it must be accepted, cancelled or expire first.`,
  ],
  TransferExpired: ['TRANSFER_EXPIRED', ([tokenId]) => `The pending transfer of asset ${tokenId} has expired.`],
  TransferToOwner: ['TRANSFER_TO_OWNER', ([tokenId]) => `Asset ${tokenId} already belongs to the recipient.`],
  ExpiryPassed: ['EXPIRY_PASSED', () => 'The transfer would expire in the past.'],
  SignatureExpired: ['SIGNATURE_EXPIRED', () => 'The deadline of the signature has passed.'],
  InvalidSignature: [
    'INVALID_SIGNATURE',
    () => 'The signature does not fit the request, its signer or the current nonce.',
  ],
  TransfersLocked: ['TRANSFERS_LOCKED', () => 'The registry has no direct transfers; use initiate and accept.'],
  AccessControlUnauthorizedAccount: [
    'ROLE_MISSING',
    () => 'The operator key does not hold the role that this step needs.',
  ],
  AccessControlBadConfirmation: ['REFUSED', () => 'The contract refused the call.'],
  InvalidShortString: ['REFUSED', () => 'The contract refused the call.'],
  StringTooLong: ['REFUSED', () => 'The contract refused the call.'],
} as const satisfies Record<ContractError, readonly [code: string, sentence: (values: Arguments) => string]>

/** Reasons that are not the contract's. */
const others = {
  INVALID_REQUEST: 'A value of the request does not fit what the contract takes.',
  OPERATOR_KEY_MISSING: 'No operator key is configured for this step.',
  OPERATOR_UNFUNDED: 'The operator account cannot pay for the transaction; fund it and repeat the request.',
  FEE_TOO_HIGH: 'The chain asks for a higher fee than the service is willing to pay; repeat the request later.',
  IDEMPOTENCY_CONFLICT: 'This idempotency key was used for another request.',
  REFUSED: 'The contract refused the call.',
  REVERTED:
    'The transaction was mined but reverted: the asset changed before it. Use a new idempotency key to try again.',
  SUPERSEDED:
    'Another transaction took the place of this one, which was never mined. Use a new idempotency key to try again.',
} as const

type WriteFailureCode = (typeof sentences)[ContractError][0] | keyof typeof others
export type WriteFailure = Readonly<{ ok: false; code: WriteFailureCode; message: string; txHash?: Hex }>

export function writeFailure(code: keyof typeof others, txHash?: Hex): WriteFailure {
  return { ok: false, code, message: others[code], ...(txHash === undefined ? {} : { txHash }) }
}

/** What revert data says. */
export function revertFailure(data: Hex | undefined): WriteFailure {
  if (data === undefined) return writeFailure('REFUSED')
  try {
    const { errorName, args } = decodeErrorResult({ abi: assetRegistryAbi, data })
    if (!isContractError(errorName)) return writeFailure('REFUSED')
    const [code, sentence]: readonly [WriteFailureCode, (values: Arguments) => string] = sentences[errorName]
    return { ok: false, code, message: sentence([String(args?.[0]), String(args?.[1])]) }
  } catch {
    return writeFailure('REFUSED')
  }
}

function isContractError(name: string): name is ContractError {
  return Object.hasOwn(sentences, name)
}
