/** Batches and software tags for tests. */
import { randomBytes } from 'node:crypto'
import {
  createKeyRing,
  embeddedBatch,
  newBatch,
  type BatchRecord,
  type BatchKeyRecord,
  type NewBatchOptions,
  type TagBatch,
} from '../../../src/tap/keys/batch.ts'
import { createAuthenticate } from '../../../src/tap/sun/authenticate.ts'
import { createDemoTag, type SoftwareTag } from '../../../src/tap/provisioning/software-tag.ts'
import { keepSecret } from '../evidence.ts'
import { createTemplate, type TagTemplate } from '../../../src/tap/provisioning/template.ts'

const usualAddress = 'https://verify.example.com/api/verify?picc={picc}&cmac={cmac}'

/** A demo batch under new random keys. */
export function testBatch(options: Partial<NewBatchOptions> = {}): BatchRecord {
  const made = newBatch({ id: 'test', demo: true, ...options })
  if (made === null) throw new Error('The test batch is not legal.')
  return made.record
}

/** A batch of chips that are in use, under new random keys. */
export function batchInUse(id: string, change: Partial<BatchRecord> = {}): BatchRecord {
  return { ...testBatch({ id, demo: false }), ...change }
}

export function testBatches(...records: readonly BatchKeyRecord[]): Promise<TagBatch[]> {
  return Promise.all(records.map((record) => embeddedBatch(record)))
}

export function testTemplate(batch: BatchKeyRecord, address = usualAddress): TagTemplate {
  const result = createTemplate(address, batch.macInput)
  if (!result.ok) throw new Error(result.error)
  return result.template
}

/** A tag of the batch; without `uid` a new one. */
export async function testTag(
  batch: BatchKeyRecord,
  {
    uid = newUid(),
    counter = 0,
    template = testTemplate(batch),
  }: { uid?: Uint8Array; counter?: number; template?: TagTemplate } = {},
): Promise<SoftwareTag & { uid: Uint8Array; next: () => { picc: string; cmac: string } }> {
  const tag = await createDemoTag({ batch, uid, counter, template })
  for (const key of [batch.fileMaster, batch.metaKey]) if (key) keepSecret(Buffer.from(key).toString('hex'))
  const next = () => {
    const tap = parametersOf(tag.tap())
    keepSecret(tap.picc)
    keepSecret(tap.cmac)
    return tap
  }
  return { ...tag, uid, next }
}

type AuthenticateOptions = Parameters<typeof createAuthenticate>[0]

/** The check of taps in hex, with the keys of a ring or of batches. */
export function verifier(
  keys: AuthenticateOptions['keys'] | readonly TagBatch[],
  options: Partial<AuthenticateOptions> = {},
) {
  const authenticate = createAuthenticate({ keys: 'likely' in keys ? keys : createKeyRing(keys), ...options })
  return ({ picc, cmac }: { picc: string; cmac: string }, how?: Parameters<typeof authenticate>[2]) =>
    authenticate(Buffer.from(picc, 'hex'), Buffer.from(cmac, 'hex'), how)
}

export function newUid(): Uint8Array {
  return Uint8Array.from([0x04, ...randomBytes(6)])
}

export function parametersOf(address: string | null): { picc: string; cmac: string } {
  const query = new URL(address ?? 'https://none.example/').searchParams
  return { picc: query.get('picc') ?? '', cmac: query.get('cmac') ?? '' }
}
