/**
 * Signed heads of the audit trail. The issuer signs one a day into a file of DATA_DIR, which a database account cannot change. A trail that
 * was written anew or cut does not agree with them.
 */
import { open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import { type AuditHead, auditHead, formatHead, readAudit } from '../db/audit.ts'
import type { Database, Sql } from '../db/database.ts'
import { locks, lockStatement } from '../db/locks.ts'
import { ifMissing, reasonOf } from '../lib/errors.ts'
import { parseJsonObject } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { makeFolder } from '../lib/private-folder.ts'
import type { Issuer } from '../passport/signing/issuer.ts'
import type { IssuerKey } from '../passport/signing/issuer-keys.ts'

/** A head with the id of the key that signed it, and the signature's time in milliseconds. */
export type SignedHead = AuditHead & Readonly<{ keyId: string; at: number }>

/** `forged`: not signed by a key of this issuer, or altered. `revoked`: by a key that counts for nothing any more. */
export type OpenedHead =
  | Readonly<{ ok: true; head: SignedHead }>
  | Readonly<{ ok: false; because: 'forged' | 'revoked' }>

export function auditHeadFile(dataDir: string): string {
  return join(dataDir, 'audit', 'heads.jws')
}

/** The `typ` of the JWS, so that no other text that the issuer signs passes for a head. */
const headType = 'audit-head+jwt'
const algorithm = 'ES256'

/** Signs a head as one line (JWS). Returns null where the issuer has no ES256 key that signs. */
export async function signHead(issuer: Issuer, did: string, head: AuditHead, now: number): Promise<string | null> {
  const signer = issuer.listSignerFor(did)
  if (!signer.forms.includes('application/vc+jwt')) return null
  const claims = { iat: Math.floor(now / 1_000), seq: head.seq.toString(), hash: head.hash }
  return signer.signJws({ typ: headType }, claims)
}

/** Opens a line of `signHead` with the keys that the issuer ever had. */
export async function openHead(line: string, keys: readonly IssuerKey[]): Promise<OpenedHead> {
  const forged = { ok: false, because: 'forged' } as const
  try {
    const { kid = '' } = decodeProtectedHeader(line)
    const key = keys.find(({ id }) => id === kid.slice(kid.indexOf('#') + 1))
    if (key?.algorithm !== algorithm) return forged
    const { payload, protectedHeader } = await compactVerify(line, await importJWK(key.publicJwk, algorithm), {
      algorithms: [algorithm],
    })
    if (protectedHeader.typ !== headType) return forged
    if (key.status === 'revoked') return { ok: false, because: 'revoked' }
    const { seq, hash, iat } = parseJsonObject(new TextDecoder().decode(payload)) ?? {}
    return { ok: true, head: { seq: BigInt(String(seq)), hash: String(hash), keyId: key.id, at: Number(iat) * 1_000 } }
  } catch {
    return forged
  }
}

/** Reads the signed heads of a file, the oldest first; none where there is no file. */
export async function readHeads(path: string): Promise<readonly string[]> {
  return (await wholeLines(path)).split('\n').filter((line) => line !== '')
}

/** Reads the lines that have their end. A full disk or a kill can leave a last one without it. */
async function wholeLines(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(ifMissing(''))
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

/** Appends a line after the whole ones, in place of a last one that lacks its end. The caller holds `locks.auditHeads`. */
async function appendLine(path: string, line: string): Promise<void> {
  await makeFolder(dirname(path))
  const length = Buffer.byteLength(await wholeLines(path))
  await using file = await open(path, 'a', 0o600)
  await file.truncate(length)
  await file.appendFile(`${line}\n`)
  await file.sync()
}

const dayMs = 86_400_000

type HeadSignerOptions = {
  readonly database: Pick<Database, 'transaction'>
  readonly issuer: Issuer
  readonly did: string
  readonly path: string
  readonly log: Log
}

/**
 * Keeps signed heads in a file and writes each to the log. `sign` is due when the newest one is a day old. It signs nothing, and says so,
 * while the trail lacks the head that was signed before. Processes that share the file sign one after another.
 */
export function createHeadSigner({ database, issuer, did, path, log }: HeadSignerOptions) {
  /** The newest head of this process: a file that cannot be written has none. */
  let logged: string | undefined

  async function sign(sql: Sql, now: number): Promise<void> {
    await sql.query(lockStatement(locks.auditHeads))
    const line = (await readHeads(path)).at(-1) ?? logged
    const last = line === undefined ? null : await openHead(line, issuer.keys())
    if (last?.ok === false && last.because === 'forged')
      return log.error('the newest signed audit head is not of this issuer: find out who wrote it', { file: path })
    if (last?.ok === true) {
      if (Math.abs(now - last.head.at) < dayMs) return
      if (!(await holds(sql, last.head)))
        return log.error('the audit trail lacks the head that was signed last: run touchstone audit verify', {
          head: formatHead(last.head),
        })
    }
    const head = await auditHead(sql)
    const signed = await signHead(issuer, did, head, now)
    if (signed === null) return
    log.info('audit head signed', { head: formatHead(head), jws: signed })
    logged = signed
    await appendLine(path, signed)
  }

  return {
    sign: (now = Date.now()): Promise<void> =>
      database
        .transaction((sql) => sign(sql, now))
        .catch((error: unknown) =>
          log.warn('audit head not signed, or not kept', { file: path, reason: reasonOf(error) }),
        ),
  }
}

/** Returns whether the trail has the entry of a head. That of an empty trail is before the first. */
async function holds(sql: Sql, { seq, hash }: AuditHead): Promise<boolean> {
  if (seq === 0n) return true
  const [entry] = await readAudit(sql, seq - 1n, 1)
  return entry?.seq === seq && entry.hash === hash
}
