/** Bodies from elsewhere are read up to a limit: nobody out there is believed, not even about a length. */

/** The body as UTF-8, or null when it has more than `mostBytes`; leaving off then ends its connection. It throws what the transport throws. */
export async function textWithin(body: AsyncIterable<Uint8Array> | null, mostBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > mostBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size).toString('utf8')
}
