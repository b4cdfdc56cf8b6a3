/** The sources of the documentation, docs/*.md, in the order of reading. The addresses of an instance replace the demonstration's. */
import { deployments } from '@touchstone/verdict'
import { readFileSync } from 'node:fs'
import { didHost } from '../../../discovery/openapi.ts'
import { docsPath, titleOf } from '../../../pages/docs/markdown.ts'

/** Public addresses, without a slash at the end. */
export type DocsSite = {
  readonly baseUrl: string
  /** Left out: that of `npm start`. */
  readonly gatewayUrl?: string | undefined
  readonly graphqlUrl?: string | undefined
  /** The registry's address. */
  readonly contract: string
  readonly pages: { readonly publicRpcUrl: string | null }
}

/** In the order of reading; `index` is the page at /docs. */
const groups = {
  Start: ['index', 'quick-start', 'trust-model'],
  Tasks: ['verify-in-a-shop-app', 'tags-on-a-production-line', 'let-an-agent-buy-proofs', 're-derive-it-yourself'],
  Guides: ['rest-api', 'taps-and-tags', 'passports', 'graphql', 'gateway', 'agents'],
  Reference: ['api', 'graphql-reference', 'error-codes', 'rules', 'threat-model'],
  Operation: [
    'operators-handbook',
    'deployment',
    'upgrading',
    'traces',
    'incidents',
    'failover',
    'capacity',
    'measurements',
  ],
} as const

export const docsNames = Object.values(groups).flat()

/** Returns path and title of every page but the first, in the order of reading. */
export function docsPages(): readonly { readonly path: string; readonly title: string }[] {
  return docsNames.slice(1).map((name) => ({ path: docsPath(name), title: titleOf(sourceOf(name)) }))
}

/** Returns every page for one instance. `file` is the name of the source, `name` the last part of the path. */
export function docsSources(site: DocsSite) {
  return Object.entries(groups).flatMap(([group, names]) =>
    names.map((file) => {
      const markdown = localised(sourceOf(file), site)
      return { file, group, name: file === 'index' ? '' : file, title: titleOf(markdown), markdown }
    }),
  )
}

function sourceOf(name: string): string {
  return readFileSync(new URL(`../../../../../docs/${name}.md`, import.meta.url), 'utf8')
}

/** Replaces the addresses of `npm start`, and leaves out the comments that mark generated parts. */
function localised(markdown: string, { baseUrl, gatewayUrl, graphqlUrl, contract, pages }: DocsSite): string {
  const isLocal = contract.toLowerCase() === deployments.local.contract.toLowerCase()
  const places: readonly (readonly [RegExp, string | undefined])[] = [
    [/^<!-- .* -->\n+/gm, ''],
    [/--deployment local/g, isLocal ? undefined : `--contract ${contract}`],
    [/deployment: 'local'/g, isLocal ? undefined : `contract: '${contract}'`],
    [/127\.0\.0\.1%3A8080(?!\d)/g, didHost(baseUrl)],
    [/http:\/\/127\.0\.0\.1:8080(?!\d)/g, baseUrl],
    [/(?<![/\w])127\.0\.0\.1:8080(?!\d)/g, new URL(baseUrl).host],
    [/http:\/\/127\.0\.0\.1:8081(?!\d)/g, gatewayUrl],
    [/http:\/\/127\.0\.0\.1:8082(?!\d)/g, graphqlUrl],
    [/ws:\/\/127\.0\.0\.1:8082(?!\d)/g, graphqlUrl?.replace(/^http/, 'ws')],
    [/http:\/\/127\.0\.0\.1:8545(?!\d)/g, pages.publicRpcUrl?.replace(/\/$/, '') ?? 'https://sepolia.base.org'],
    [/0x5FbDB2315678afecb367f032d93F642f64180aa3/g, contract],
  ]
  return places.reduce((text, [from, to]) => (to === undefined ? text : text.replace(from, () => to)), markdown)
}
