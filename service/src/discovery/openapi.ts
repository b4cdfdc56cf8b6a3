/** The OpenAPI 3.1 description of all three hosts: `service/openapi.yaml` as JSON with the URLs of this instance. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import { lazyDocument, staticDocument, type StaticDocument } from '../http/static-document.ts'
import type { HostUrls, NamedHosts } from './instance.ts'

/** Parsing takes a third of a second, a tenth of a start: it waits for the first request. */
export function openApiDocument(urls: NamedHosts): StaticDocument {
  return lazyDocument(() => staticDocument('application/json', withUrls(readOpenApi(), urls)))
}

let read: string | undefined

/** Returns the description as it stands in the file, in JSON. A process loads the parser and uses it once. */
export function readOpenApi(): string {
  if (read === undefined) {
    const { parse } = createRequire(import.meta.url)('yaml') as typeof Yaml
    const text = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8')
    const { 'x-shared': _shared, ...document } = parse(text, { merge: true, maxAliasCount: -1 }) as Record<
      string,
      unknown
    >
    read = JSON.stringify(document)
  }
  return read
}

/** The URLs in the file; `touchstone dev` listens there too. */
const defaultUrls: HostUrls = {
  verification: 'http://127.0.0.1:8080',
  gateway: 'http://127.0.0.1:8081',
  graphql: 'http://127.0.0.1:8082',
}

/** Replaces the URLs of the file. One pass, because a new URL may equal the default of another host. */
export function withUrls(text: string, { gateway, ...others }: NamedHosts): string {
  const description = gateway === null ? withoutGateway(text) : text
  const urls: HostUrls = { ...others, gateway: gateway ?? exampleGateway }
  const hosts = Object.keys(defaultUrls) as (keyof HostUrls)[]
  return description.replace(/http:\/\/127\.0\.0\.1:808[012](?![0-9])|127\.0\.0\.1%3A808[012](?![0-9])/g, (found) => {
    const isDid = found.includes('%3A')
    const host = hosts.find((name) => (isDid ? didHost(defaultUrls[name]) : defaultUrls[name]) === found)
    return host === undefined ? found : isDid ? didHost(urls[host]) : urls[host]
  })
}

/** Examples of schemas name it where there is no gateway. */
const exampleGateway = 'https://pay.example.com'

type Server = { readonly url: string }
type Servers = { servers?: readonly Server[] }
type Description = Servers & { tags: readonly { readonly name: string }[]; paths: Record<string, Servers> }

/** Leaves out the routes that only the gateway serves, and its place among the servers of others. */
function withoutGateway(text: string): string {
  const { tags, paths, ...rest } = JSON.parse(text) as Description
  const isOther = ({ url }: Server) => url !== defaultUrls.gateway
  const served = Object.entries(paths).flatMap(([path, item]) => {
    const { servers } = item
    if (servers === undefined) return [[path, item]]
    const others = servers.filter(isOther)
    return others.length === 0 ? [] : [[path, { ...item, servers: others }]]
  })
  const otherTags = tags.filter(({ name }) => name !== 'gateway')
  return JSON.stringify({ ...rest, tags: otherTags, paths: Object.fromEntries(served) })
}

/** The host of a URL as did:web has it, with an encoded colon before the port. */
export function didHost(url: string): string {
  return encodeURIComponent(new URL(url).host)
}
