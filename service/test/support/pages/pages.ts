/** A world in which every page of the service can be opened. */
import { join } from 'node:path'
import { demoThemes, openDemoCatalogue } from '../../../src/cli/dev/catalogue.ts'
import { demoBatch, demoUid } from '../../../src/cli/dev/products.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { listen } from '../../../src/http/listener.ts'
import { createLog } from '../../../src/lib/log.ts'
import { pagePath } from '../../../src/passport/links.ts'
import { startService } from '../../../src/app/service.ts'
import { createDemoTag } from '../../../src/tap/provisioning/software-tag.ts'
import { verificationListener } from '../../../src/hosts/verification/host.ts'
import { copyEmptyPglite } from '../database/pglite.ts'
import { testFolder } from '../folder.ts'
import { demoBatchOf } from '../tap/bound.ts'
import { parametersOf, testTag, testTemplate } from '../tap/tags.ts'
import { patientDeadlines, startWorld, type World } from '../world.ts'
import { noWallets } from './wallets.ts'

export type PageWorld = Awaited<ReturnType<typeof startPageWorld>>

const silent = createLog(() => {}, 'silent')

/** The demonstration's products by what they show. */
const product = {
  minted: 0,
  bound: 1,
  activated: 2,
  noText: 3,
  claimed: 4,
  lost: 5,
  stolen: 6,
  recall: 7,
  confirmed: 8,
  investigation: 9,
  recycled: 10,
  opened: 11,
  hostile: 12,
  chair: 13,
  satchel: 14,
  jacket: 15,
} as const
type ProductName = keyof typeof product

export async function startPageWorld({ env = {} }: { env?: Record<string, string> } = {}) {
  const settings: Record<string, string> = {
    THEME_DIR: demoThemes,
    PAGE_OWNERSHIP: 'claim,transfer,report,passkey',
    PASSPORT_SIGNING: 'on',
    ISSUER_NAME: 'Example Verifier',
    ...env,
  }
  const world = await startWorld({
    env: settings,
    // The address of the chain is known from here on; the settings are read after this.
    rpcUrl: async (chain) => (settings['PUBLIC_RPC_URL'] = chain),
  })
  try {
    return await filled(world)
  } catch (error) {
    await world.end() // else its chain would keep the process alive
    throw error
  }
}

async function filled(world: World) {
  const { components: parts } = world
  const items = await openDemoCatalogue({ components: parts, rpcUrl: world.chainUrl, progress: () => {} })
  const record = parts.tagKeys.record(demoBatch)
  if (record === undefined) throw new Error('There is no demo batch.')
  const batch = record
  const secrets: string[] = []

  async function tagOf(uid: Uint8Array) {
    secrets.push(Buffer.from(uid).toString('hex'))
    const tag = await createDemoTag({ batch, uid, template: testTemplate(batch) })
    return () => {
      const { picc, cmac } = parametersOf(tag.tap())
      secrets.push(picc, cmac)
      return `picc=${picc}&cmac=${cmac}`
    }
  }
  const tags = new Map<number, Awaited<ReturnType<typeof tagOf>>>()

  async function pathOf(name: ProductName): Promise<string> {
    const item = await parts.items.itemOfToken(tokenOf(name))
    return pagePath(tokenOf(name), item)
  }
  const tokenOf = (name: ProductName) => items[product[name]]?.tokenId ?? 0n
  /** A new tap of a product's chip, as a query. */
  async function tap(name: ProductName): Promise<string> {
    const index = product[name]
    const next = tags.get(index) ?? (await tagOf(demoUid(index)))
    tags.set(index, next)
    return next()
  }
  const tapped = async (name: ProductName) => `${world.url}${await pathOf(name)}?${await tap(name)}`

  const more = await openOthers(world)
  return {
    ...world,
    secrets,
    pathOf,
    tokenOf,
    tap,
    tapped,
    tagOf,
    limitedUrl: more.limitedUrl,
    bareUrl: more.bareUrl,
    downUrl: more.downUrl,
    downTap: more.downTap,
    async end() {
      await more.close()
      await world.end()
    },
  }
}

/** Faulty services over the same chain. One is out of budget, one has no keys, one has no chain and demands two taps. */
async function openOthers(world: World) {
  const limiter = createRateLimiter({ limit: 0, windowSeconds: 60 })
  const limited = await listen({
    name: 'limited host',
    host: '127.0.0.1',
    port: 0,
    onRequest: verificationListener({
      ...world.components,
      baseUrl: world.url,
      limiter,
      tapLimiter: limiter,
      clientKey: () => '',
      log: silent,
    }),
  })
  const folder = testFolder()
  async function start(name: string, env: Record<string, string>, deadlines = {}) {
    const dataDir = join(folder, name)
    await copyEmptyPglite(join(dataDir, 'store'))
    const config = readConfig({ ...world.settings, PUBLIC_RPC_URL: '', DATA_DIR: dataDir, ...env })
    return startService(config, silent, { deadlines })
  }
  const [bare, down] = await Promise.all([
    start('bare', { TAG_KEK: '', PAGE_OWNERSHIP: '', ...noWallets }, patientDeadlines),
    start('down', { CHAIN_RPC_URLS: 'http://127.0.0.1:9', TAP_CHALLENGE: 'on' }),
  ])
  const tag = await testTag(await demoBatchOf(down, 'down'))
  return {
    limitedUrl: `http://127.0.0.1:${limited.port}`,
    bareUrl: bare.urls.verification,
    downUrl: down.urls.verification,
    downTap: () => {
      const { picc, cmac } = parametersOf(tag.tap())
      return `picc=${picc}&cmac=${cmac}`
    },
    async close() {
      await Promise.all([limited.close(200), bare.close(200), down.close(200)])
    },
  }
}
