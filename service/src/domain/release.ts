/** The packages of a release. They are installed by file or URL: the project owns no name on a registry (decisions/0030). */
import { existsSync } from 'node:fs'
import { programVersion } from '../lib/version.ts'

export const packageNames = {
  library: '@touchstone/verdict',
  cli: '@touchstone/cli',
  service: '@touchstone/service',
} as const

/** Returns the file name of a package, as npm makes it of its name and version. */
export function tarballName(name: keyof typeof packageNames): string {
  return `${packageNames[name].slice(1).replace('/', '-')}-${programVersion}.tgz`
}

export const packagesFolder = new URL('../../../dist/packages/', import.meta.url)

/** Files of the packages for clients that this service offers. One that was started from sources may have none. */
export const offeredPackages: readonly string[] = (['cli', 'library'] as const)
  .map(tarballName)
  .filter((file) => existsSync(new URL(file, packagesFolder)))

/** Returns the words that start the program for a reader without a checkout, or null. They look no name up on a registry. */
export function clientCommand(baseUrl: string): string | null {
  const file = tarballName('cli')
  return offeredPackages.includes(file) ? `npx --yes ${baseUrl}/packages/${file}` : null
}
