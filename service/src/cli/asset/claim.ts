/** `touchstone asset claim`: the holder of the item who taps it becomes its owner (spec §3, CLAIMED). The attester signs after the tap. */
import type { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { repeatedClaim } from '../../chain/transactions/calls.ts'
import { writeFailure } from '../../chain/transactions/failures.ts'
import { registryTypedData } from '../../chain/transactions/typed-data.ts'
import { chainId } from '../../domain/chain.ts'
import { createAuthenticate } from '../../tap/sun/authenticate.ts'
import { readRegistry } from './show.ts'
import { addWriteOptions, previousRequest, write, type WriteFlags } from './write.ts'
import { chainOf, retryChain, type RunWork, type Session } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { parseTapBytes } from '../../tap/parameters.ts'
import { formatRefusal, resolveTapUrl } from '../tag/verify.ts'

type Options = WriteFlags & {
  claimant?: Hex
  tap?: string
  consent?: Hex
  deadline?: bigint
  demoAccount?: number
  prepare?: true
}

export function claimCommand(run: RunWork): Command {
  const description = 'Makes an activated asset the claimant’s, after a tap of its tag and with the claimant’s consent.'
  const command = defineCommand('claim', description, {
    examples: [
      'touchstone asset claim 7 --claimant 0x… --prepare > consent.json     (the claimant signs it with a wallet)',
      "touchstone asset claim 7 --claimant 0x… --deadline 1893456000 --consent 0x… --tap 'https://…'",
      'touchstone asset claim 3 --demo-account 2 --tap "$(touchstone tag emulate --batch demo --uid 0444454D4F0002 --tap)"',
    ],
  })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--claimant <address>', 'the new owner', argument.address)
    .option('--tap <url>', 'address of a fresh tap of its tag, in quotes; it is used up', argument.tapUrl)
    .option('--consent <signature>', 'the claimant’s signature over what --prepare prints', argument.signature)
    .option('--deadline <seconds>', 'unix time up to which the consent counts, as it was signed', argument.unixTime)
    .option('--prepare', 'print the message that the claimant must sign (EIP-712), and stop')
    .option(
      '--demo-account <n>',
      'demonstration only: account 2 to 9 of the local chain claims and consents',
      argument.count(9),
    )
  return addWriteOptions(command).action(inSession(run, claim))
}

async function claim(session: Session, tokenId: bigint, options: Options): Promise<number> {
  const account = options.demoAccount === undefined ? undefined : demoAccount(session, options.demoAccount)
  const claimant = options.claimant ?? (account?.address.toLowerCase() as Hex | undefined)
  if (claimant === undefined) throw new CommandError('Give the new owner: --claimant with an address.')
  if (account !== undefined && account.address.toLowerCase() !== claimant)
    throw new CommandError('--demo-account consents for itself only: leave --claimant out.')
  const deadline = options.deadline ?? BigInt(Math.floor(Date.now() / 1_000)) + 3_600n
  if (options.prepare === true) return prepare(session, { tokenId, claimant, deadline })
  if (options.tap === undefined)
    throw new CommandError('A claim needs a tap of the tag: --tap with the address it gave.')
  if (account === undefined && (options.consent === undefined || options.deadline === undefined))
    throw new CommandError(
      'A claim needs the claimant’s consent: --consent and the --deadline it names (see --prepare).',
    )

  const change = `make asset ${tokenId} the claimant's`
  const sent = await previousRequest(session, options)
  if (sent !== undefined) {
    const request = repeatedClaim(sent, { tokenId, claimant, deadline: options.deadline, signature: options.consent })
    if (request === null) throw new CommandError(writeFailure('IDEMPOTENCY_CONFLICT').message)
    return (await write(session, request, options, change)).exit
  }
  const { tapCounter, tagHash } = await (options.dryRun === true ? readTap : consumeTap)(session, tokenId, options.tap)
  const { writer, contract } = chainOf(session)
  const claimed = { tokenId, claimant, tapCounter, deadline }
  const attestation = await retryChain(session.io, () => writer.attestClaim({ ...claimed, tagHash }))
  if (!attestation.ok) throw new CommandError(attestation.message)
  const { nonce, attester, attesterSignature } = attestation
  const domain = { chainId, contract: contract.toLowerCase() as Hex }
  const message = { tokenId, claimant, nonce, deadline }
  const claimantSignature =
    options.consent ?? (await account?.signTypedData(registryTypedData(domain, 'ClaimConsent', message))) ?? '0x'
  const request = { kind: 'claim', ...claimed, attester, attesterSignature, claimantSignature } as const
  return (await write(session, request, options, change)).exit
}

function demoAccount({ config }: Session, index: number) {
  if (!config.demo) throw new CommandError('--demo-account exists on the local chain of npm start only.')
  const account = index < 2 ? undefined : publishedAccounts(index + 1)[index]
  if (account === undefined) throw new CommandError('--demo-account is 2 to 9; 0 and 1 are operator and attester.')
  return account
}

/** Prints the consent to sign. Its nonce ends with the next offer, claim or restock; then the consent must be signed again. */
async function prepare(
  session: Session,
  message: { tokenId: bigint; claimant: Hex; deadline: bigint },
): Promise<number> {
  const { source, contract } = chainOf(session)
  const [, , nonce] = await readRegistry({ source, contract }, await source.head(), 'pendingTransfer', message.tokenId)
  const typed = registryTypedData({ chainId, contract }, 'ClaimConsent', { ...message, nonce })
  session.io.out(formatJson(typed))
  session.io.err(`Sign this as the claimant, then give --consent the signature and --deadline ${message.deadline}.`)
  return 0
}

/** A tap of the asset's tag, with the commitment under which the tag is bound. */
type OwnTap = { readonly tapCounter: number; readonly tagHash: Hex }

/** Consumes the tap that the attester needs, and checks that it is this asset's tag. */
async function consumeTap(session: Session, tokenId: bigint, url: string): Promise<OwnTap> {
  const outcome = await resolveTapUrl(session, url)
  if (outcome.kind !== 'resolved') throw new CommandError(formatRefusal(outcome))
  const { tag, verdict } = outcome
  if (verdict.token_id !== tokenId.toString())
    throw new CommandError(`The tag is bound to asset ${verdict.token_id}, not to ${tokenId}.`)
  return tag
}

/** Checks the tap for a dry run and does not consume it. Whether it was used before stays unknown. */
async function readTap(session: Session, tokenId: bigint, url: string): Promise<OwnTap> {
  const { reader, tagHash, formerTagHash, tagKeys } = chainOf(session)
  const tap = parseTapBytes(url)
  if (tap === null || tagHash === undefined)
    throw new CommandError('--tap needs an address with picc (32 hex digits) and cmac (16).')
  const found = await createAuthenticate({ keys: tagKeys.keys })(tap.picc, tap.cmac)
  if (!found.genuine) throw new CommandError(`not verified: counterfeit (${found.reason}).`)
  const bound = await reader.readByTag(tagHash(found.uid), formerTagHash?.(found.uid))
  if (bound.tokenId !== tokenId) throw new CommandError(`The tag is not bound to asset ${tokenId}.`)
  return { tapCounter: found.counter, tagHash: bound.tagHash }
}
