/** A provider that lies once: a proxy in front of a node that alters one answer at one random place. */
import { serve } from '../../service/test/support/http.ts'

export type Random = ReturnType<typeof createRandom>

/** Makes a repeatable generator (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  return { below, pick }
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Path = readonly (string | number)[]
/** `inValue`: the lie is a result of `eth_call` that has the form of a true one. */
type MadeLie = { readonly what: string; readonly inValue: boolean }

/** Listens on a free port. `prepare` plans the lie of the next read and returns its URL; `made` is null until a request met the lie. */
export async function startLiar(target: string, random: Random) {
  let made: MadeLie | null = null
  let skip = 0
  let reads = 0
  /** True answers of before, by method: a lie may repeat one in another place. */
  const kept = new Map<string, Json[]>()

  const { url, close } = await serve((request, response) => {
    void (async () => {
      const body = Buffer.concat(await request.toArray()).toString('utf8')
      const reached = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      const calls = [JSON.parse(body) as { id: number; method: string }].flat()
      let text = await reached.text()
      const answer = JSON.parse(text) as Json
      // A request of the read before may come late.
      if (request.url === `/${reads}` && made === null && skip-- <= 0) text = lieAbout(answer, calls)
      for (const [index, one] of [answer].flat().entries()) keep(calls[index]?.method ?? '', one)
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })().catch(() => response.destroy())
  })

  function keep(method: string, answer: Json): void {
    const results = kept.get(method) ?? []
    if (results.length < 50 && isRecord(answer) && answer['result'] !== undefined) results.push(answer['result'])
    kept.set(method, results)
  }

  function lieAbout(answer: Json, calls: readonly { id: number; method: string }[]): string {
    const paths = [...pathsOf(answer)]
    const results = paths.filter((path) => path.includes('result'))
    // Half of the lies are about the result, where they do harm.
    const path = random.pick(results.length > 0 && random.below(2) === 0 ? results : paths)
    const member = Array.isArray(answer) ? answer[Number(path[0])] : answer
    const call = calls.find(({ id }) => isRecord(member) && member['id'] === id) ?? calls[0]
    const method = call?.method ?? ''
    const [name, lie] = random.pick(lies)
    const changed = lie(structuredClone(answer), path, kept.get(method) ?? [])
    const what = `${name} at ${method} ${path.join('.')}`
    // A lie that changes nothing is none; the next request meets another.
    if (JSON.stringify(changed) === JSON.stringify(answer)) return JSON.stringify(answer)
    made = { what, inValue: method === 'eth_call' && path.includes('result') }
    return typeof changed === 'string' ? changed : JSON.stringify(changed)
  }

  type Lie = (answer: Json, path: Path, before: readonly Json[]) => Json
  const lies: readonly (readonly [name: string, lie: Lie])[] = [
    ['a digit', (answer, path) => replace(answer, path, flip)],
    ['a digit', (answer, path) => replace(answer, path, flip)],
    ['a digit', (answer, path) => replace(answer, path, flip)],
    ['cut short', (answer, path) => replace(answer, path, (value) => textOf(value).slice(0, -1 - random.below(8)))],
    ['made longer', (answer, path) => replace(answer, path, (value) => `${textOf(value)}00`)],
    [
      'another type',
      (answer, path) => replace(answer, path, () => random.pick<Json>([null, 0, '', '0x', true, [], {}])),
    ],
    ['zeros', (answer, path) => replace(answer, path, (value) => textOf(value).replaceAll(/[1-9a-f]/g, '0'))],
    ['left out', (answer, path) => replace(answer, path, () => undefined)],
    ['a member more', (answer, path) => replace(answer, [...path.slice(0, -1), 'extra'], () => '0x1')],
    ['an older answer', (answer, path, before) => replace(answer, upTo(path, 'result'), () => random.pick(before))],
    ['an older answer', (answer, path, before) => replace(answer, upTo(path, 'result'), () => random.pick(before))],
    [
      'an error',
      (answer) =>
        replace(answer, Array.isArray(answer) ? [0, 'error'] : ['error'], () => ({ code: -32000, message: 'no' })),
    ],
    ['another order', (answer) => (Array.isArray(answer) ? answer.toReversed() : [answer])],
  ]

  /** Changes one digit; mostly one that is not zero, where values are. */
  function flip(value: Json): Json {
    const text = textOf(value)
    const places = Array.from(text, (_, at) => at).filter((at) => at > 1 || !text.startsWith('0x'))
    const filled = places.filter((at) => text[at] !== '0')
    const at = random.pick(filled.length > 0 && random.below(4) > 0 ? filled : places)
    const digit = (Number.parseInt(text.charAt(at) || '0', 16) ^ (1 + random.below(15))).toString(16)
    const changed = text.slice(0, at) + digit + text.slice(at + 1)
    return typeof value === 'number' ? Number(changed) : changed
  }

  return {
    close,
    prepare() {
      made = null
      skip = random.below(6)
      reads += 1
      return { url: `${url}/${reads}`, made: (): MadeLie | null => made }
    },
  }
}

/** Returns a leaf as text. */
function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function isRecord(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Yields the path of each leaf of an answer. */
function* pathsOf(value: Json, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return yield path
  for (const [key, member] of Object.entries(value))
    yield* pathsOf(member, [...path, Array.isArray(value) ? Number(key) : key])
}

function upTo(path: Path, key: string): Path {
  const at = path.indexOf(key)
  return at < 0 ? path : path.slice(0, at + 1)
}

/** Replaces the member at a path, or leaves it out for `undefined`. */
function replace(answer: Json, path: Path, change: (value: Json) => Json | undefined): Json {
  const [key, ...rest] = path
  if (key === undefined) return change(answer) ?? null
  if (typeof answer !== 'object' || answer === null) return answer
  const holder = answer as Record<string | number, Json>
  const next = rest.length === 0 ? change(holder[key] ?? null) : replace(holder[key] ?? null, rest, change)
  if (next === undefined) delete holder[key]
  else holder[key] = next
  return answer
}
