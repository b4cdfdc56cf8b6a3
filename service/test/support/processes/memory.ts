/** Searches the memory of a child process: JavaScript heaps of all its threads, buffers, and native memory. Linux only. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const chunkBytes = 8 * 1024 * 1024

/** Returns the names of the secrets in writable memory. It finds bytes, hex and base64, in one-byte or two-byte text. */
export function findInMemory(pid: number, secrets: ReadonlyMap<string, Uint8Array>): Set<string> {
  const needles = [...secrets].flatMap(([name, secret]) => formsOf(secret).map((form) => ({ name, form })))
  const overlap = Math.max(...needles.map(({ form }) => form.length))
  const found = new Set<string>()
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  try {
    const chunk = Buffer.alloc(chunkBytes)
    for (const { from, to } of writableRegions(pid))
      for (let at = from; at < to; at += chunkBytes - overlap) {
        const length = readAt(memory, chunk, at, Math.min(chunkBytes, to - at))
        const bytes = chunk.subarray(0, length)
        for (const { name, form } of needles) if (!found.has(name) && bytes.includes(form)) found.add(name)
      }
  } finally {
    closeSync(memory)
  }
  return found
}

function formsOf(secret: Uint8Array): Buffer[] {
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const texts = [hex, hex.toUpperCase(), bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')]
  return [bytes, ...texts.flatMap((text) => [Buffer.from(text, 'latin1'), Buffer.from(text, 'utf16le')])]
}

function writableRegions(pid: number): { readonly from: number; readonly to: number }[] {
  return readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
      return from === undefined || to === undefined
        ? []
        : [{ from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) }]
    })
}

/** Returns 0 for a region that the kernel does not let read, or that has gone meanwhile. */
function readAt(memory: number, chunk: Buffer, at: number, length: number): number {
  try {
    return readSync(memory, chunk, 0, length, at)
  } catch {
    return 0
  }
}
