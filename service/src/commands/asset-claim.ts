/** `touchstone asset claim`: whoever holds the item and taps it becomes its owner (spec §3, CLAIMED). The attester signs after the tap. */
import { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { publishedAccounts } from '../chain/local-chain-accounts.ts'
import { registryTypedData } from '../chain/write-calls-typed-data.ts'
import { chainId } from '../parts.ts'
import { createAuthenticate } from '../tap/authenticate.ts'
import { bytesOf } from '../tap/bytes.ts'
import { readRegistry } from './asset-show.ts'
import { addWriteOptions, write, type WriteOptions } from './asset-write.ts'
import { patiently } from './patience.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'
import { refusalOf, tapOf } from './tag-verify.ts'

type Options = WriteOptions & {
  claimant?: Hex
  tap?: string
  consent?: Hex
  deadline?: bigint
  demoAccount?: number
  prepare?: true
}

export function claimCommand(run: RunWork): Command {
  const command = new Command('claim')
    .description('Makes an activated asset the claimant’s, after a tap of its tag and with the claimant’s consent.')
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--claimant <address>', 'who claims it', argument.address)
    .option('--tap <url>', 'address of a fresh tap of its tag, in quotes; it is used up', argument.tapUrl)
    .option('--consent <signature>', 'the claimant’s signature over what --prepare prints', argument.signature)
    .option('--deadline <seconds>', 'unix time up to which the consent counts, as it was signed', argument.unixTime)
    .option('--prepare', 'print what the claimant has to sign (EIP-712), and stop')
    .option('--demo-account <n>', 'demonstration only: account 2 to 9 of the local chain claims and consents', (text) =>
      argument.count(9)(text),
    )
  return addWriteOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  touchstone asset claim 7 --claimant 0x… --prepare > consent.json     (the claimant signs it with a wallet)
  touchstone asset claim 7 --claimant 0x… --deadline 1893456000 --consent 0x… --tap 'https://…'
  touchstone asset claim 3 --demo-account 2 --tap "$(touchstone tag emulate --batch demo --uid 0444454D4F0002 --tap)"`,
    )
    .action((id: bigint, options: Options) => run((session) => claim(session, id, options)))
}

async function claim(session: Session, tokenId: bigint, options: Options): Promise<number> {
  const account = options.demoAccount === undefined ? undefined : demoAccount(session, options.demoAccount)
  const claimant = options.claimant ?? (account?.address.toLowerCase() as Hex | undefined)
  if (claimant === undefined) throw new CommandError('Say who claims it: --claimant with an address.')
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

  const tapCounter = await (options.dryRun === true ? looked : tapped)(session, tokenId, options.tap)
  const { writer, contract } = chainOf(session)
  const claimed = { tokenId, claimant, tapCounter, deadline }
  const attestation = await patiently(session.io, () => writer.attestClaim(claimed))
  if (!attestation.ok) throw new CommandError(attestation.message)
  const { nonce, attester, attesterSignature } = attestation
  const domain = { chainId, contract: contract.toLowerCase() as Hex }
  const message = { tokenId, claimant, nonce, deadline }
  const claimantSignature =
    options.consent ?? (await account?.signTypedData(registryTypedData(domain, 'ClaimConsent', message))) ?? '0x'
  return (
    await write(
      session,
      { kind: 'claim', tokenId, claimant, tapCounter, deadline, attester, attesterSignature, claimantSignature },
      options,
      { change: `make asset ${tokenId} the claimant's`, tokenId },
    )
  ).exit
}

function demoAccount({ demo }: Session, index: number) {
  if (!demo) throw new CommandError('--demo-account exists on the local chain of npm start only.')
  const account = index < 2 ? undefined : publishedAccounts(index + 1)[index]
  if (account === undefined) throw new CommandError('--demo-account is 2 to 9; 0 and 1 are operator and attester.')
  return account
}

/** The nonce dies with the next offer, claim or restock; the consent then has to be signed anew. */
async function prepare(
  session: Session,
  message: { tokenId: bigint; claimant: Hex; deadline: bigint },
): Promise<number> {
  const { source, contract } = chainOf(session)
  const [, , nonce] = await readRegistry({ source, contract }, await source.head(), 'pendingTransfer', message.tokenId)
  const typed = registryTypedData({ chainId, contract }, 'ClaimConsent', { ...message, nonce })
  session.io.out(
    JSON.stringify(typed, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2),
  )
  session.io.err(`Sign this as the claimant, then give --consent the signature and --deadline ${message.deadline}.`)
  return 0
}

/** The attester's word needs a tap that counts, of the tag of this very asset. */
async function tapped(session: Session, tokenId: bigint, url: string): Promise<number> {
  const presented = await patiently(session.io, () => chainOf(session).presentTap(tapOf(url)))
  if (presented.kind !== 'resolved') throw new CommandError(refusalOf(presented))
  const { tag, verdict } = presented
  if (verdict.token_id !== tokenId.toString())
    throw new CommandError(`The tag is bound to asset ${verdict.token_id}, not to ${tokenId}.`)
  return tag.tapCounter
}

/** The same without using the tap up, for a dry run; whether it was used before stays unknown. */
async function looked(session: Session, tokenId: bigint, url: string): Promise<number> {
  const { reader, tagHash, fleet } = chainOf(session)
  const [picc, cmac] = Object.values(tapOf(url)).map(([text = '']) => bytesOf(text))
  if (picc?.length !== 16 || cmac?.length !== 8 || tagHash === undefined)
    throw new CommandError('--tap needs an address with picc (32 hex digits) and cmac (16).')
  const found = await createAuthenticate({ keys: fleet.keys })(picc, cmac)
  if (!found.genuine) throw new CommandError(`not verified: counterfeit (${found.reason}).`)
  const bound = await reader.readByTag(tagHash(found.uid))
  if (bound.tokenId !== tokenId) throw new CommandError(`The tag is not bound to asset ${tokenId}.`)
  return found.counter
}
