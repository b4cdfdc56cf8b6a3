/**
 * Proves the keys of a batch by the link of one genuine tap, before they are stored (spec §4.4). A master that does not fit would make
 * every tag of the batch counterfeit.
 */
import { type BatchRecord, embeddedBatch, importedBatch, type TagBatch } from '../keys/batch.ts'
import { formatScheme, hasOwnMetaKey, parseScheme, schemeNames } from '../keys/derivations.ts'
import { type Diagnosis, diagnoseTagUrl } from './doctor.ts'

/** `uid` is 14 hex digits. `note` is a sentence about links that this verifier does not read as they are. */
export type KeyProof =
  | { readonly ok: true; readonly uid: string; readonly counter: number; readonly note: string | null }
  | { readonly ok: false; readonly error: string }

/** Proves that the keys of `record` made the tap of this URL. `error` is one sentence that names what does not fit. */
export async function proveKeys(record: BatchRecord, url: string): Promise<KeyProof> {
  const diagnosis = await diagnoseTagUrl(url, { batches: [await embeddedBatch(record)] })
  const { uid, counter, findings } = diagnosis
  const faults = findings.filter(({ code }) => code !== 'parameter_names')
  if (faults.length === 0 && uid !== null && counter !== null)
    return { ok: true, uid, counter, note: findings[0]?.text ?? null }
  const other = uid === null ? await otherScheme(record, url) : null
  const remedy = other === null ? remedyOf(record, diagnosis) : ` The keys fit --scheme ${other}.`
  return { ok: false, error: `${faults.map(({ text }) => text).join(' ')}${remedy}` }
}

/**
 * Returns the id of the batch whose keys made the tap of a URL; null for none. The parameters may have any names. Batches are tried one by
 * one, because several may share a metaRead key.
 */
export async function batchOfTap(url: string, batches: readonly TagBatch[]): Promise<string | null> {
  for (const batch of batches) {
    const { uid, findings } = await diagnoseTagUrl(url, { batches: [batch] })
    if (uid !== null && findings.every(({ code }) => code === 'parameter_names')) return batch.id
  }
  return null
}

/** Returns the scheme under which the same master explains the tap, or `null`. */
async function otherScheme(record: BatchRecord, url: string): Promise<string | null> {
  for (const name of schemeNames) {
    const scheme = parseScheme(name)
    if (scheme === null || formatScheme(record) === name) continue
    const { metaKey, fileMaster, derivationVersion: _, ...settings } = record
    const own = hasOwnMetaKey(scheme.derivation) ? { metaKey: metaKey ?? fileMaster } : {}
    const other = importedBatch({ ...settings, scheme, master: fileMaster, ...own })
    if (other === null) continue
    if ((await batchOfTap(url, [await embeddedBatch(other)])) !== null) return name
  }
  return null
}

function remedyOf(record: BatchRecord, { uid, macInput, scheme, fileKeyNo }: Diagnosis): string {
  if (uid === null) return ''
  const options = [
    scheme !== null && scheme !== record.derivation
      ? `--scheme ${formatScheme({ ...record, derivation: scheme })}`
      : '',
    fileKeyNo !== null && fileKeyNo !== record.fileKeyNo ? `--file-key-no ${fileKeyNo}` : '',
    macInput !== null && macInput !== 'text' && macInput !== record.macInput ? `--mac-input ${macInput}` : '',
  ].filter((option) => option !== '')
  return options.length === 0 ? '' : ` The keys fit with ${options.join(' ')}.`
}
