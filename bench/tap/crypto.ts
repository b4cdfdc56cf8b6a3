/**
 * The cryptography of a tap in one process: PICC block, derivation of the tag's key, session key, MAC, compare.
 * The bench compares the service's code with the same steps written plainly on `node:crypto`.
 */
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto'
import { createAuthenticate } from '../../service/src/tap/sun/authenticate.ts'
import { diversificationInput } from '../../service/src/tap/keys/derivations.ts'
import {
  embeddedBatch,
  newBatch,
  type BatchRecord,
  createKeyRing,
  type KeyRing,
} from '../../service/src/tap/keys/batch.ts'
import { createDemoTag } from '../../service/src/tap/provisioning/software-tag.ts'
import { createTemplate } from '../../service/src/tap/provisioning/template.ts'
import { whole } from '../lib/print.ts'
import { median } from '../lib/processes.ts'

export type Tap = { picc: Uint8Array; cmac: Uint8Array }
type Contender = { name: string; verify: (tap: Tap) => boolean | Promise<boolean>; rates: number[] }

const tags = 1_000
const tapsPerRound = 20_000
const rounds = 7

/** Prints verifications per CPU second and the ratio to the plain build; throws when a contender refuses a genuine tap. */
export async function benchTapCrypto(): Promise<void> {
  const record = batchNamed('bench')
  const keys = createKeyRing([await embeddedBatch(record)])
  const taps = await tapsOf(record)
  const contenders: [Contender, ...Contender[]] = [
    { name: 'node:crypto, built plainly', verify: plainly(record), rates: [] },
    { name: 'ours', verify: ours(keys), rates: [] },
  ]
  const [baseline] = contenders
  for (const contender of contenders) await round(contender, taps, tapsPerRound / 4)
  for (const contender of contenders) contender.rates.length = 0
  for (let count = 0; count < rounds; count++)
    for (const contender of contenders) await round(contender, taps, tapsPerRound)
  for (const { name, rates } of contenders) {
    const ratios = rates.map((rate, index) => rate / (baseline.rates[index] ?? Number.NaN))
    console.log(
      `${name.padEnd(28)} ${whole(median(rates)).padStart(9)} per CPU second   ratio ×${median(ratios).toFixed(1)}`,
    )
  }
}

/** Taps of as many tags of one batch. */
export async function newTaps(count: number): Promise<{ batch: BatchRecord; taps: Tap[] }> {
  const batch = batchNamed('http')
  return { batch, taps: await tapsOf(batch, count) }
}

async function round(contender: Contender, taps: readonly Tap[], count: number): Promise<void> {
  const began = process.cpuUsage()
  for (let index = 0; index < count; index++) {
    const tap = taps[index % taps.length]
    if (tap === undefined || !(await contender.verify(tap))) throw new Error(`${contender.name} refused a genuine tap.`)
  }
  contender.rates.push(count / cpuSeconds(began))
}

function ours(keys: KeyRing): Contender['verify'] {
  const authenticate = createAuthenticate({ keys })
  return async ({ picc, cmac }) => (await authenticate(picc, cmac)).genuine
}

/** As one writes it first: a cipher object per block operation, nothing kept. */
function plainly({ metaKey = new Uint8Array(0), fileMaster, fileKeyNo, systemId }: BatchRecord): Contender['verify'] {
  return ({ picc, cmac }) => {
    const decipher = createDecipheriv('aes-128-cbc', metaKey, Buffer.alloc(16)).setAutoPadding(false)
    const plain = Buffer.concat([decipher.update(picc), decipher.final()])
    if (plain[0] !== 0xc7) return false
    const uid = plain.subarray(1, 8)
    const fileKey = plainCmac(fileMaster, Buffer.concat([Buffer.of(1), diversificationInput(uid, fileKeyNo, systemId)]))
    const session = plainCmac(fileKey, Buffer.concat([Buffer.from('3cc300010080', 'hex'), plain.subarray(1, 11)]))
    const mac = plainCmac(session, Buffer.alloc(0))
    return timingSafeEqual(Buffer.from(mac.filter((_, index) => index % 2 === 1)), cmac)
  }
}

function plainCmac(key: Uint8Array, message: Buffer): Buffer {
  const ecb = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false)
  const k1 = doubled(Buffer.concat([ecb.update(Buffer.alloc(16)), ecb.final()]))
  const isWhole = message.length > 0 && message.length % 16 === 0
  const padded = isWhole
    ? Buffer.from(message)
    : Buffer.concat([message, Buffer.of(0x80), Buffer.alloc(15 - (message.length % 16))])
  const mask = isWhole ? k1 : doubled(k1)
  const last = padded.length - 16
  for (let index = 0; index < 16; index++) padded[last + index] = (padded[last + index] ?? 0) ^ (mask[index] ?? 0)
  const cbc = createCipheriv('aes-128-cbc', key, Buffer.alloc(16)).setAutoPadding(false)
  return Buffer.concat([cbc.update(padded), cbc.final()]).subarray(last)
}

function doubled(block: Buffer): Buffer {
  const out = Buffer.alloc(16)
  for (let index = 0; index < 16; index++) out[index] = ((block[index] ?? 0) << 1) | ((block[index + 1] ?? 0) >> 7)
  if ((block[0] ?? 0) & 0x80) out[15] = (out[15] ?? 0) ^ 0x87
  return out
}

export function batchNamed(id: string): BatchRecord {
  const made = newBatch({ id, demo: true })
  if (made === null) throw new Error('The batch is not legal.')
  return made.record
}

export async function tapsOf(batch: BatchRecord, count = tags): Promise<Tap[]> {
  const result = createTemplate('https://a.example/?picc={picc}&cmac={cmac}')
  if (!result.ok) throw new Error(result.error)
  const taps: Tap[] = []
  for (let index = 0; index < count; index++) {
    const uid = Uint8Array.of(4, 0, 0, 0, index >> 16, index >> 8, index) // each cut to a byte
    const tag = await createDemoTag({ batch, uid, template: result.template })
    const query = new URL(tag.tap() ?? '').searchParams
    const bytes = (name: string) => Uint8Array.from(Buffer.from(query.get(name) ?? '', 'hex'))
    taps.push({ picc: bytes('picc'), cmac: bytes('cmac') })
  }
  return taps
}

export function cpuSeconds(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1e6
}
