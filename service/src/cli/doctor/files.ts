/** Checks of the files that settings name and a start reads. */
import type { Config } from '../../app/config/config.ts'
import { readThemes } from '../../app/themes.ts'
import type { Finding } from './finding.ts'

/** Throws where a start would. */
export async function checkThemes({ roles, pages }: Config): Promise<readonly Finding[]> {
  if (roles.has('verification')) readThemes(pages.themeDir)
  return []
}

/** Throws where a start would. */
export async function checkTrustedDocuments(config: Config): Promise<readonly Finding[]> {
  if (config.roles.has('graphql') && config.graphql.persisted !== null)
    await (await import('../../app/hosts.ts')).trustedDocumentsOf(config)
  return []
}
