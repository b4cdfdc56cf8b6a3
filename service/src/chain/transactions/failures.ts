/** The reasons why a write fails, as a code to branch on and a sentence to show (spec §4.9 `errors`). No sentence names an address. */
import { type Hex, lifecycleStates } from '@touchstone/verdict'
import { decodeErrorResult } from 'viem/utils'
import { assetRegistryAbi } from '../../domain/registry-abi.ts'

type ContractError = Extract<(typeof assetRegistryAbi)[number], { type: 'error' }>['name']

const refused = ['REFUSED', 'The contract refused the call.'] as const

/** One entry for each error of the contract, which the compiler checks. `$0` and `$1` are the error's values, `$state` names state `$1`. */
const sentences = {
  AssetNotFound: ['ASSET_NOT_FOUND', 'Asset $0 does not exist.'],
  WrongState: ['WRONG_STATE', 'Asset $0 is $state; this step does not lead from there.'],
  TokenIdRefused: ['TOKEN_ID_REFUSED', 'This token id is reserved and cannot be minted.'],
  TokenIdTaken: ['TOKEN_ID_TAKEN', 'Asset $0 already exists.'],
  ZeroAddress: ['ZERO_ADDRESS', 'An address is needed where none was given.'],
  ZeroTag: ['ZERO_TAG', 'A tag is needed where none was given.'],
  TagTaken: ['TAG_TAKEN', 'This tag is already bound to asset $1; a tag serves one asset for ever.'],
  NotOwner: ['NOT_OWNER', 'Only the owner of asset $0 may do this.'],
  NotRecipient: ['NOT_RECIPIENT', 'Only the recipient of the pending transfer of asset $0 may accept it.'],
  NotTransferParty: [
    'NOT_TRANSFER_PARTY',
    'Only the owner or the recipient may cancel the pending transfer of asset $0.',
  ],
  InvalidFlags: ['INVALID_FLAGS', 'The flags hold no bit, or a bit without a meaning.'],
  FlagsAlreadySet: ['FLAGS_ALREADY_SET', 'Asset $0 already has these flags.'],
  FlagsNotSet: ['FLAGS_NOT_SET', 'Asset $0 does not have these flags.'],
  FlagsNotAllowed: ['FLAGS_NOT_ALLOWED', 'The operator key may not change these flags.'],
  NoPendingTransfer: ['NO_PENDING_TRANSFER', 'Asset $0 has no pending transfer.'],
  TransferPending: [
    'TRANSFER_PENDING',
    'Asset $0 has a pending transfer; it must be accepted, cancelled or expire first.',
  ],
  TransferExpired: ['TRANSFER_EXPIRED', 'The pending transfer of asset $0 has expired.'],
  TransferToOwner: ['TRANSFER_TO_OWNER', 'Asset $0 already belongs to the recipient.'],
  ExpiryPassed: ['EXPIRY_PASSED', 'The transfer would expire in the past.'],
  RecycleLocked: [
    'RECYCLE_LOCKED',
    'Asset $0 was claimed: it can be recycled 30 days after its announcement (touchstone asset announce-recycle).',
  ],
  AttesterLimitReached: [
    'ATTESTER_LIMIT',
    'The attester key has reached its limit of this day; the admin of the contract can raise it (setAttesterLimit).',
  ],
  SignatureExpired: ['SIGNATURE_EXPIRED', 'The deadline of the signature has passed.'],
  InvalidSignature: ['INVALID_SIGNATURE', 'The signature does not fit the request, its signer or the current nonce.'],
  TransfersLocked: ['TRANSFERS_LOCKED', 'The registry has no direct transfers; use initiate and accept.'],
  AccessControlUnauthorizedAccount: ['ROLE_MISSING', 'The operator key does not hold the role that this step needs.'],
  AccessControlBadConfirmation: refused,
  AccessControlEnforcedDefaultAdminDelay: refused,
  AccessControlEnforcedDefaultAdminRules: refused,
  AccessControlInvalidDefaultAdmin: refused,
  SafeCastOverflowedUintDowncast: refused,
  InvalidShortString: refused,
  StringTooLong: refused,
} as const satisfies Record<ContractError, readonly [code: string, sentence: string]>

/** Reasons that do not come from the contract. */
const others = {
  INVALID_REQUEST: 'A value of the request does not fit what the contract takes.',
  OPERATOR_KEY_MISSING: 'No operator key is configured for this step.',
  OPERATOR_UNFUNDED: 'The operator account cannot pay for the transaction; fund it and repeat the request.',
  FEE_TOO_HIGH: 'The chain asks for a higher fee than the service is willing to pay; repeat the request later.',
  IDEMPOTENCY_CONFLICT: 'This idempotency key was used for another request. Send a new one.',
  WITHDRAWN: 'The request was withdrawn before it was signed; repeat it.',
  REFUSED: refused[1],
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

/** Keys under which one step is sent at most. */
const mostKeys = 5

/** Repeats a write under further keys: a transaction that reverted, or that another one replaced, has used its key up. `tried` counts from 1. */
export async function writeWithNextKey<Result extends Pick<WriteFailure, 'ok' | 'code'> | { readonly ok: true }>(
  write: (tried: number) => Promise<Result>,
): Promise<Result> {
  for (let tried = 1; ; tried += 1) {
    const result = await write(tried)
    const isUsedUp = !result.ok && (result.code === 'REVERTED' || result.code === 'SUPERSEDED')
    if (!isUsedUp || tried === mostKeys) return result
  }
}

/** Returns the failure that revert data stands for. */
export function revertFailure(data: Hex | undefined): WriteFailure {
  if (data === undefined) return writeFailure('REFUSED')
  try {
    const { errorName, args } = decodeErrorResult({ abi: assetRegistryAbi, data })
    if (!isContractError(errorName)) return writeFailure('REFUSED')
    const [code, sentence] = sentences[errorName]
    const state = lifecycleStates[Number(args?.[1])] ?? 'in an unknown state'
    const message = sentence.replace('$state', state).replace(/\$([01])/, (_, index) => String(args?.[Number(index)]))
    return { ok: false, code, message }
  } catch {
    return writeFailure('REFUSED')
  }
}

function isContractError(name: string): name is ContractError {
  return Object.hasOwn(sentences, name)
}
