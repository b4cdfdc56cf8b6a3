/** A mutant is one small change of a file. It has a name and a fate, whatever the language of the file. */
import { createHash } from 'node:crypto'

/** `start` and `end` are byte offsets into the file; `text` replaces what lies between them. */
export type Mutant = Readonly<{ file: string; line: number; start: number; end: number; text: string; change: string }>

/** `killed`: a test failed or ran out of time. `equal`: the compiled code is that of the original. `invalid`: it does not compile. */
export type Fate = 'killed' | 'survived' | 'equal' | 'invalid'

/** A target has mutants and tests that judge them. Paths are relative to the root of the project. */
export type Target = Readonly<{
  name: string
  /** Per cent of killed among killed and survived. */
  lowestScore: number
  mutants: () => readonly Mutant[]
  /** Returns the files that decide the fates: sources, tests, and what the tests read. */
  inputs: () => readonly string[]
  /** Throws where the tests fail without a mutant. Runs before the first mutant. */
  prepare: () => Promise<void>
  /** With `quick` only the quick tests run: what survives them is not judged yet. */
  fateOf: (mutant: Mutant, quick?: boolean) => Promise<Fate>
  close?: () => Promise<void>
}>

/** Returns the mutated text of a file. */
export function mutate(source: string, { start, end, text }: Mutant): string {
  const bytes = Buffer.from(source)
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]).toString()
}

/** Names mutants by the text of their line, not by its number. A name thus outlives other changes of the file. */
export function namedMutants(
  mutants: readonly Mutant[],
  sourceOf: (file: string) => string,
): ReadonlyMap<string, Mutant> {
  const named = new Map<string, Mutant>()
  const lines = new Map<string, readonly string[]>()
  for (const mutant of mutants) {
    const { file, line, change } = mutant
    const text = lines.get(file) ?? sourceOf(file).split('\n')
    lines.set(file, text)
    const name = `${file}: ${text[line - 1]?.trim()}: ${change.replaceAll(/\s+/g, ' ')}`
    let unique = name
    for (let count = 2; named.has(unique); count += 1) unique = `${name} (${count})`
    named.set(unique, mutant)
  }
  return named
}

/** Takes `count` names in an order that depends on the seed alone. */
export function sampleOf(names: readonly string[], count: number, seed: string): readonly string[] {
  const rank = (name: string) => createHash('sha256').update(`${seed} ${name}`).digest('hex')
  return names
    .map((name) => ({ name, rank: rank(name) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, count)
    .map(({ name }) => name)
}
