/** Reads bodies of other services up to a limit. A declared length is not trusted. */

/** Returns the body as UTF-8, or null when it has more than `maxBytes`; its connection is closed then. Throws what the transport throws. */
export async function textWithin(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size).toString('utf8')
}
