/**
 * Returns the URL of a module of this program beside another one. It is TypeScript in a checkout, JavaScript in the package of a release.
 */
export function moduleUrl(name: string, beside: string): URL {
  const [extension = '.js'] = /\.[jt]s$/.exec(beside) ?? []
  return new URL(`${name}${extension}`, beside)
}
