/** The verification host over the components of a world, without a socket. */
import { verificationHost, type VerificationHost } from '../../../src/hosts/verification/host.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { World } from '../world.ts'

/** `changes` are its parts that are not those of the world's own host. All requests are of one client. */
export function hostOf(
  { components, url }: Pick<World, 'components' | 'url'>,
  changes: Partial<VerificationHost> = {},
) {
  const log = createLog(() => {}, 'silent')
  return verificationHost({ ...components, baseUrl: url, clientKey: () => 'one', log, ...changes })
}
