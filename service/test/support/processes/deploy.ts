/** The files of deploy/ as values for tests. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'

export const root = fileURLToPath(new URL('../../../../', import.meta.url))
export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Stage = {
  readonly name: string
  readonly copies: readonly { readonly from: string | null; readonly sources: readonly string[]; readonly to: string }[]
  readonly runs: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly user: string | null
  /** Words of ENTRYPOINT and CMD together, and of HEALTHCHECK. */
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
}

/** The stages of a Dockerfile that is written as ours: JSON for commands, one COPY a line. */
export function stagesOf(dockerfile: string): readonly Stage[] {
  const lines = dockerfile
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '')
  const starts = lines.flatMap((line, at) => (line.startsWith('FROM ') ? [at] : []))
  return starts.map((at, index) => stageOf(lines.slice(at, starts[index + 1])))
}

function stageOf(lines: readonly string[]): Stage {
  const all = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
  const json = (text = '[]') => JSON.parse(text) as string[]
  const copies = all('COPY').map((text) => {
    const words = text.split(' ')
    const from = words[0]?.startsWith('--from=') ? (words.shift()?.slice('--from='.length) ?? null) : null
    return { from, sources: words.slice(0, -1), to: words.at(-1) ?? '' }
  })
  return {
    name: / AS (\S+)$/.exec(lines[0] ?? '')?.[1] ?? '',
    copies,
    runs: all('RUN'),
    env: Object.fromEntries(all('ENV').flatMap((text) => text.split(' ').map((pair) => pair.split('=', 2)))) as Record<
      string,
      string
    >,
    user: all('USER')[0] ?? null,
    command: [...json(all('ENTRYPOINT')[0]), ...json(all('CMD')[0])],
    healthcheck: json(all('HEALTHCHECK')[0]?.replace(/^.*?CMD /, '')),
  }
}

/** The files below `source` that the image gets: .dockerignore leaves out the others. The last of its lines that fits decides. */
export function copiedFiles(source: string): string[] {
  const rules = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: line.replace(/^!/, '') }))
  const isKept = (path: string) => {
    const parents = path.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/'))
    let kept = true
    for (const { keeps, pattern } of rules) if (parents.some((parent) => matchesGlob(parent, pattern))) kept = keeps
    return kept
  }
  return filesBelow(source).filter(isKept)
}

/** Paths from the root of the project; links and node_modules are passed over. */
export function filesBelow(path: string): string[] {
  try {
    return readdirSync(join(root, path), { withFileTypes: true })
      .filter(({ name }) => name !== 'node_modules')
      .flatMap((entry) => (entry.isDirectory() ? filesBelow(`${path}/${entry.name}`) : [`${path}/${entry.name}`]))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return [path]
    throw error
  }
}

/** The assignments of an env file, without its comments. */
export function envOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => /^[A-Z]/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

/** Values that an operator fills in for the empty lines of an example. */
export function filledIn(env: Readonly<Record<string, string>>): Record<string, string> {
  const address = `0x${'5f'.repeat(20)}`
  const made: Readonly<Record<string, string>> = {
    CHAIN_CONTRACT: address,
    PAYMENT_PAY_TO: address,
    COMPOSE_PROFILES: 'gateway',
    CHAIN_START_BLOCK: '1',
    DATABASE_URL: 'postgres://touchstone@127.0.0.1/touchstone',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example.com',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc',
  }
  const value = (name: string, found: string) =>
    found === '' ? (made[name] ?? 'a7'.repeat(31) + '01') : (found.includes('…') && made[name]) || found
  return Object.fromEntries(Object.entries(env).map(([name, found]) => [name, value(name, found)]))
}

type Container = {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly env?: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly secretKeyRef?: { readonly optional?: boolean } }
  }[]
  readonly envFrom?: readonly object[]
  readonly securityContext?: unknown
  readonly volumeMounts?: readonly {
    readonly name: string
    readonly mountPath: string
    readonly readOnly?: boolean
    readonly subPath?: string
  }[]
}
type Pod = {
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly securityContext?: { readonly runAsNonRoot?: boolean }
  readonly volumes?: readonly {
    readonly name: string
    readonly secret?: { readonly secretName: string; readonly optional?: boolean }
    readonly persistentVolumeClaim?: { readonly claimName: string }
  }[]
}
export type Resource = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec?: {
    readonly replicas?: number
    readonly strategy?: { readonly type?: string }
    readonly template?: { readonly spec: Pod }
  }
}
type Compose = Readonly<{
  services: Record<
    string,
    {
      image?: string
      command?: string[]
      environment?: Record<string, string>
      read_only?: boolean
      configs?: { source: string; target: string }[]
      ports?: string[]
      volumes?: string[]
      tmpfs?: string[]
      mem_limit?: string
      logging?: { options: Record<string, string> }
      profiles?: string[]
      healthcheck?: { test?: string[] }
      depends_on?: Record<string, { required?: boolean }>
    }
  >
  configs: Record<string, { file?: string; content?: string }>
  volumes: Record<string, unknown>
}>

export const readCompose = (): Compose => parse(read('deploy/compose.yaml'), { merge: true }) as Compose

/** The values of variables in a text of compose.yaml, where an empty one has the fallback of `:-`. */
export const interpolated = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\$\{(\w+)(?::?([-?])([^}]*))?\}/g, (_, name: string, kind = '', fallback = '') =>
    kind === '-' ? values[name] || fallback : (values[name] ?? ''),
  )

/** The resources of Kubernetes in the YAML files below a folder. */
export function resourcesOf(folder: string): Resource[] {
  return filesBelow(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) =>
      parseAllDocuments(read(name)).map((document) => {
        assert.deepEqual(document.errors, [], name)
        return document.toJS() as Resource
      }),
    )
}
