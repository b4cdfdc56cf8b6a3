/**
 * The keys in DATA_DIR/keys (spec §4.4, §4.8, §9): of tags, of the issuer, of attestations. Several processes may share the folder: what
 * one of them changes by a command, or an operator copies there, the others take over within two seconds.
 */
import { unwatchFile, watchFile } from 'node:fs'
import { join } from 'node:path'
import { isPublishedAddress } from './chain/local-chain-accounts.ts'
import type { Config } from './config.ts'
import { reasonOf } from './errors.ts'
import { openAttestationKeys, type AttestationKeys } from './gateway/keys.ts'
import type { Log } from './log.ts'
import { attestationKeyStore } from './store/attestation-keys.ts'
import type { Database } from './store/database.ts'
import { issuerKeyStore } from './store/issuer-keys.ts'
import { openFleet, type SharedBatches } from './tap/fleet.ts'
import { openIssuer } from './verification/passport-keys.ts'

/** Every change renames a file into the folder, which shows in its time. Polled, because network folders tell of nothing. */
const lookMs = 1_000

export async function openKeys(
  config: Config,
  { database, tags, log }: { readonly database: Database; readonly tags: SharedBatches; readonly log: Log },
  opened: AsyncDisposableStack,
) {
  const { kek } = config.tap
  const keyFile = kek === null ? null : { kek, demo: config.demo }
  const folder = join(config.dataDir, 'keys')
  const fleet = await openFleet({ folder, keyFile, shared: tags })
  const issuer = await openIssuer({
    folder,
    signing: config.passport.signing && config.roles.has('verification'),
    published: issuerKeyStore(database),
  })
  let opening: Promise<AttestationKeys> | undefined
  /** Asked only where attestations are signed, named or looked after. */
  const attestationKeys = () =>
    (opening ??= openAttestationKeys({
      folder,
      history: attestationKeyStore(database),
      privateKey: config.gateway.attestationKey,
      keystore: config.gateway.keystore,
      keystorePasswordFile: config.gateway.keystorePasswordFile,
      isPublicKnowledge: isPublishedAddress,
      demo: config.demo,
      // Of several processes only those that sell attestations make a key: what is made must be at hand where it signs.
      mayMake: config.roles.has('gateway') || config.store.databaseUrl === null,
    }))

  async function reload(): Promise<void> {
    await fleet.reload()
    await issuer.reload()
    await (await opening)?.reload()
  }
  const changed = () =>
    void reload().catch((error: unknown) => log.error('changed keys not taken over', { reason: reasonOf(error) }))
  watchFile(folder, { interval: lookMs, persistent: false }, changed)
  opened.defer(() => unwatchFile(folder, changed))
  return { fleet, issuer, attestationKeys }
}
