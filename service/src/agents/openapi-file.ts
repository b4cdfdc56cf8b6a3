/** The generated description as the service gives it out: `service/openapi.json` with the URLs of this instance. */
import { readFileSync } from 'node:fs'
import type { Host } from './openapi-operation.ts'

export type HostUrls = Readonly<Record<Host, string>>

/** What the generated file names; also where `touchstone dev` listens. */
export const defaultUrls: HostUrls = {
  verification: 'http://127.0.0.1:8080',
  gateway: 'http://127.0.0.1:8081',
  graphql: 'http://127.0.0.1:8082',
}

export const openApiFile = new URL('../../openapi.json', import.meta.url)

/** Throws when the file of the program is missing. `urls` are origins, without a slash at the end. */
export function openApiText(urls: HostUrls): string {
  return withUrls(readFileSync(openApiFile, 'utf8'), urls)
}

/** In one pass, so that no URL is taken for another one's default. */
export function withUrls(text: string, urls: HostUrls): string {
  const hosts = Object.entries(defaultUrls) as [Host, string][]
  return text.replace(/http:\/\/127\.0\.0\.1:808[012](?![0-9])/g, (found) => {
    const host = hosts.find(([, url]) => url === found)?.[0]
    return host === undefined ? found : urls[host]
  })
}
