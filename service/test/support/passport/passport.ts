/** Tapped items for tests of passports and Digital Links, and requests whose path goes out exactly as written. */
import assert from 'node:assert/strict'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import type { Metadata } from '../../../src/assets/metadata.ts'
import { raw, type Reply } from '../http.ts'
import { bindTagTo, demoBatchOf } from '../tap/bound.ts'
import { newUid, testTag } from '../tap/tags.ts'
import type { World } from '../world.ts'

export type Tag = Awaited<ReturnType<typeof testTag>>
export type TappedItem = { readonly tag: Tag; readonly tokenId: bigint; readonly gtin: string; readonly serial: string }

/** Items on chain with their tags, and everything that must never be read in an answer or in the log. */
export async function openItems(world: World) {
  const batch = await demoBatchOf(world)
  const secrets = new Set<string>(publishedAddresses.map((address) => address.slice(2)))
  let serials = 0

  async function newTag(): Promise<Tag> {
    const tag = await testTag(batch, { uid: newUid() })
    secrets.add(Buffer.from(tag.uid).toString('hex'))
    return {
      ...tag,
      next() {
        const tap = tag.next()
        secrets.add(tap.picc).add(tap.cmac)
        return tap
      },
    }
  }

  return {
    newTag,
    /** A bound item. Without a GTIN of its own it has none. */
    async bound(metadata?: Metadata, item?: { gtin?: string; serial?: string } | null): Promise<TappedItem> {
      const tag = await newTag()
      const { tokenId } = await bindTagTo(world, tag.uid, metadata)
      const { gtin = '09520001000003', serial = `S-${(serials += 1)}` } = item ?? {}
      if (item !== null) {
        const registered = await world.components.items.register({ tokenId, gtin, serial })
        assert.ok(
          registered.ok,
          JSON.stringify(registered, (_, value: unknown) => String(value)),
        )
      }
      return { tag, tokenId, gtin, serial }
    },
    /** Lists the secrets that these texts contain. */
    leaks: (texts: readonly string[]): string[] => {
      const all = texts.join('\n').toLowerCase()
      return [...secrets].filter((secret) => all.includes(secret.toLowerCase()))
    },
    secrets: () => secrets.size,
  }
}

/** A client that keeps every response, so that a test can search them for secrets. */
export function recordingClient(world: World) {
  const seen: string[] = []
  return {
    seen,
    ask: async (path: string, init?: Parameters<typeof raw>[2]): Promise<Reply> => {
      const reply = await raw(world.url, path, init)
      seen.push(textOf(reply))
      return reply
    },
    counterOf: async ({ tag }: TappedItem) => (await world.components.tags.tagOfUid(tag.uid))?.lastCounter ?? 0,
  }
}

/** The query of a tap. */
export function queryOf({ picc, cmac }: { picc: string; cmac: string }): string {
  return `picc=${picc}&cmac=${cmac}`
}

/** Headers and body as one text. */
export function textOf({ headers, text }: Reply): string {
  return `${JSON.stringify(headers)}\n${text}`
}

/** `verified: false` and why, open to every origin, never stored; a fault or a limit says nothing of the chip. */
export function assertRefused(reply: Reply, status: number, error: RegExp): void {
  assert.equal(reply.status, status, reply.text)
  const body = JSON.parse(reply.text) as { verified: boolean; error: string }
  assert.deepEqual(Object.keys(body), status < 429 ? ['verified', 'error'] : ['error'])
  assert.equal(body.verified, status < 429 ? false : undefined)
  assert.match(body.error, error)
  const { 'content-type': type, 'access-control-allow-origin': origin, 'cache-control': cache, vary } = reply.headers
  assert.deepEqual([type, origin, cache, vary], ['application/json', '*', 'no-store', 'Accept'])
  assert.equal(reply.headers['referrer-policy'], 'no-referrer')
}
