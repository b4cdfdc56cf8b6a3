/** Checks of the keys, without showing any. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../app/config/config.ts'
import { assertPageKeys, attestationSources, keysByRole, openKeyStores, openRoleKeys } from '../../app/keys.ts'
import type { Sql } from '../../db/database.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { assertIssuerKeys, issuerKeyStore } from '../../passport/signing/issuer.ts'
import { assertAttestationKeys } from '../../payments/attestation/keys.ts'
import { type BatchKeyRecord, keyFingerprint } from '../../tap/keys/batch.ts'
import { KeyFileError, readKeyFile } from '../../tap/keys/key-file.ts'
import { compareBatches, missingKeysRemedy } from '../../tap/keys/shared.ts'
import { tagKeyFile } from '../../tap/keys/store.ts'
import { tagStore } from '../../tap/tag-registry.ts'
import { formatError } from '../session/output.ts'
import { type CheckFinding, ok, warning, wrong } from './finding.ts'

export async function checkKeys(config: Config): Promise<readonly CheckFinding[]> {
  const { tap, roles, keys, operator } = config
  const found: CheckFinding[] = []
  if (roles.has('verification')) found.push(...(await checkTagKeys(config)))
  else if (tap.kek !== null) await readTagKeys(config, tap.kek)
  const usesTags = roles.has('verification') || roles.has('graphql')
  if (usesTags && tap.commitment === 'hmac' && tap.pepper === null)
    found.push(
      warning(
        'TAG_PEPPER is not set: no tag can be bound or found on chain.',
        'Set TAG_PEPPER, the same for every instance (openssl rand -hex 32).',
      ),
    )
  const roleKeys = [operator.issuerKey, operator.binderKey, operator.qaKey, operator.guardianKey, operator.recyclerKey]
  const isOne = operator.key !== null && roleKeys.every((key) => key === null)
  if (isOne && keys === null)
    found.push(
      warning(
        'OPERATOR_KEY is every role: a thief of it is all of them.',
        'Give each role a key; touchstone chain roles shows what they need.',
      ),
    )
  if (settlesAsWriter(config))
    found.push(
      warning(
        'A key of FACILITATOR_KEY or FACILITATOR_KEYS writes to the registry too.',
        'Give settlements an account of their own: both take the same nonces, so that one transaction replaces the other.',
      ),
    )
  return found
}

function settlesAsWriter({ gateway, operator }: Config): boolean {
  const writers = Object.values(operator).filter((key) => key !== null)
  const senders = [gateway.facilitatorKey, ...gateway.facilitatorKeys].filter((key) => key !== null)
  return senders.some((sender) => writers.some((writer) => constantTimeEqual(sender, writer)))
}

/** Throws where a start would: a key of the token is missing, or a key is a published one. */
export async function checkRoleKeys(config: Config): Promise<readonly CheckFinding[]> {
  const { rejectPublishedKeys } = await import('../../chain/transactions/writer.ts')
  await using opened = new AsyncDisposableStack()
  const stores = await openKeyStores(config, opened)
  const roleKeys = keysByRole(await openRoleKeys(config, stores))
  rejectPublishedKeys(roleKeys, config.demo)
  assertPageKeys(config, roleKeys)
  return config.keys === null ? [] : [ok('The PKCS#11 token opens.')]
}

/**
 * Throws where a start would, for the keys of the issuer and of attestations. A file may be damaged, or the folder lack keys of the database,
 * as on a second instance. `database` null: it is not asked.
 */
export async function checkSigningKeys(config: Config, database: Sql | null): Promise<readonly CheckFinding[]> {
  const { roles } = config
  await using opened = new AsyncDisposableStack()
  const stores = await openKeyStores(config, opened).catch(() => null)
  const folder = await stat(config.dataDir).catch(() => null)
  if (stores === null || folder?.isDirectory() === false) return [] // the checks of roles and folder say so
  await assertIssuerKeys({
    folder: join(config.dataDir, 'keys'),
    signing: config.passport.signing && roles.has('verification'),
    ...(database !== null && { published: issuerKeyStore(database) }),
    keyStore: stores('issuer'),
  })
  if (roles.has('gateway') || roles.has('graphql'))
    await assertAttestationKeys({ ...attestationSources(config, stores), database, sells: roles.has('gateway') })
  return []
}

function readTagKeys(
  { dataDir, demo, tap: { previousKek } }: Config,
  kek: Uint8Array,
): Promise<readonly BatchKeyRecord[]> {
  return readKeyFile(tagKeyFile(join(dataDir, 'keys')), { kek, previousKek, demo })
}

async function checkTagKeys(config: Config): Promise<readonly CheckFinding[]> {
  const { kek } = config.tap
  if (kek === null)
    return [
      warning(
        'TAG_KEK is not set: taps are answered 503.',
        'Set TAG_KEK to the key that sealed the tag keys; for new ones openssl rand -hex 32.',
      ),
    ]
  try {
    const batches = await readTagKeys(config, kek)
    const missing = await missingBatches(config, batches)
    return [
      batches.length === 0
        ? warning(
            'There is no batch of tags: every tap is answered 503.',
            'Make one with touchstone tag batch create, or copy DATA_DIR/keys from another instance.',
          )
        : ok(`TAG_KEK opens the keys of ${batches.length} ${batches.length === 1 ? 'batch' : 'batches'} of tags.`),
      ...(missing.length === 0
        ? []
        : [
            wrong(
              `The newest keys of ${missing.join(', ')} are not here: taps that fit no other batch are answered 503.`,
              missingKeysRemedy,
            ),
          ]),
    ]
  } catch (error) {
    const remedy =
      error instanceof KeyFileError
        ? 'Set the TAG_KEK of the file, or restore DATA_DIR/keys from the backup.'
        : 'Look at the owner and the mode of the file.'
    return [wrong(formatError(error), remedy)]
  }
}

/** Returns the batches of a shared database whose newest keys are not in the file. A database that cannot be read is a finding of its own. */
async function missingBatches(config: Config, records: readonly BatchKeyRecord[]): Promise<readonly string[]> {
  if (config.store.databaseUrl === null) return []
  const { openBareDatabase } = await import('../../app/store.ts')
  await using database = await openBareDatabase(config, 5_000).catch(() => null)
  if (database === null) return []
  try {
    const shared = await tagStore(database).batches()
    const inToken = new Set(records.filter(({ fileMaster }) => fileMaster === null).map(({ id }) => id))
    const readable = records.filter(({ id }) => !inToken.has(id))
    const here = await Promise.all(
      readable.map(async (record) => ({ record, fingerprint: await keyFingerprint(record) })),
    )
    return compareBatches(here, shared, config).missing.filter((id) => !inToken.has(id))
  } catch {
    return []
  }
}
