/**
 * The keys in DATA_DIR/keys (spec §4.4, §4.8, §9): of tags, of the issuer, of attestations. Several processes may share the folder. A change
 * by a command of one of them, or by an operator who copies files, is loaded by the others within two seconds.
 */
import { unwatchFile, watchFile } from 'node:fs'
import { join } from 'node:path'
import { isPublishedAddress } from '../domain/published-accounts.ts'
import type { Config } from './config/config.ts'
import { reasonOf } from '../lib/errors.ts'
import { openAttestationKeys, type AttestationKeys } from '../payments/attestation/keys.ts'
import type { Log } from '../lib/log.ts'
import { attestationKeyStore } from '../payments/attestation/history.ts'
import type { Database } from '../db/database.ts'
import { type TagKeyStore, openTagKeyStore, type SharedBatches } from '../tap/keys/store.ts'
import { type Issuer, issuerKeyStore, openIssuer } from '../passport/signing/issuer.ts'

export type Keys = {
  readonly tagKeys: TagKeyStore
  readonly issuer: Issuer
  /** Opens the keys at the first call: only a process that signs attestations, or names their key, needs them. */
  readonly attestationKeys: () => Promise<AttestationKeys>
}

/** Every change renames a file into the folder, which changes its time. Network folders send no events, so it is polled. */
const pollMs = 1_000

export async function openKeys(
  config: Config,
  { database, tags, log }: { readonly database: Database; readonly tags: SharedBatches; readonly log: Log },
  opened: AsyncDisposableStack,
): Promise<Keys> {
  const { kek } = config.tap
  const keyFile = kek === null ? null : { kek, demo: config.demo }
  const folder = join(config.dataDir, 'keys')
  const tagKeys = await openTagKeyStore({ folder, keyFile, shared: tags })
  const issuer = await openIssuer({
    folder,
    signing: config.passport.signing && config.roles.has('verification'),
    published: issuerKeyStore(database),
  })
  let opening: Promise<AttestationKeys> | undefined
  const attestationKeys = () =>
    (opening ??= openAttestationKeys({
      folder,
      history: attestationKeyStore(database),
      privateKey: config.gateway.attestationKey,
      keystore: config.gateway.keystore,
      keystorePasswordFile: config.gateway.keystorePasswordFile,
      isPublicKnowledge: isPublishedAddress,
      demo: config.demo,
      // Only processes that sell attestations make a key, because it must be where it signs.
      mayMake: config.roles.has('gateway') || config.store.databaseUrl === null,
    }))

  async function reload(): Promise<void> {
    await tagKeys.reload()
    await issuer.reload()
    await (await opening)?.reload()
  }
  const changed = () =>
    void reload().catch((error: unknown) => log.error('changed keys not loaded', { reason: reasonOf(error) }))
  watchFile(folder, { interval: pollMs, persistent: false }, changed)
  opened.defer(() => unwatchFile(folder, changed))
  return { tagKeys, issuer, attestationKeys }
}
