/** A world in which every page of the service can be opened, and the list of those pages. Each has an address that works again and again. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { demoBatch, demoThemes, demoUid, openDemoCatalogue } from '../../../src/cli/dev/catalogue.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { publishedAccounts } from '../../../src/domain/published-accounts.ts'
import { registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { listen } from '../../../src/http/listener.ts'
import { createLog } from '../../../src/lib/log.ts'
import { itemPath } from '../../../src/passport/digital-link.ts'
import { startService } from '../../../src/app/service.ts'
import { createDemoTag } from '../../../src/tap/provisioning/software-tag.ts'
import { verificationListener } from '../../../src/hosts/verification/host.ts'
import { copyEmptyPglite } from '../database/pglite.ts'
import { newUid, parametersOf, testTemplate } from '../tap/tags.ts'
import { noMetadata, startWorld, type World } from '../world.ts'

export type PageState = { readonly name: string; readonly url: string; readonly status: number }
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
    return item === null ? `/token/${tokenOf(name)}` : itemPath(item)
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
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-test-'))
  async function start(name: string, env: Record<string, string>) {
    const dataDir = join(folder, name)
    await copyEmptyPglite(join(dataDir, 'store'))
    return startService(readConfig({ ...world.settings, PUBLIC_RPC_URL: '', DATA_DIR: dataDir, ...env }), silent)
  }
  const [bare, down] = await Promise.all([
    start('bare', { TAG_KEK: '', PAGE_OWNERSHIP: '' }),
    start('down', { CHAIN_RPC_URLS: 'http://127.0.0.1:9', TAP_CHALLENGE: 'on' }),
  ])
  const made = await down.components.tagKeys.create({ id: 'down', demo: true })
  if (!made.ok) throw new Error(made.error)
  const tag = await createDemoTag({ batch: made.value, uid: newUid(), template: testTemplate(made.value) })
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
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Every page, once. */
export async function pageStates(world: PageWorld): Promise<PageState[]> {
  const { url, tapped, pathOf, tap, tokenOf } = world
  const states: PageState[] = []
  const add = (name: string, address: string, status = 200) => states.push({ name, url: address, status })

  add('home', `${url}/`)
  add('home-wrong-search', `${url}/?gtin=4006381333932&serial=A1`, 400)
  add('home-wrong-brand', `${url}/?brand=orvelle&serial=A%20B`, 400)
  add('find-none', `${url}/?find=XYZ-1`, 404)
  add('find-foreign', `${url}/?find=https%3A%2F%2Felsewhere.example%2F01%2F1`, 400)
  add('bulk', `${url}/bulk`)
  add('check', `${url}/check`)
  for (const name of [
    'bound',
    'activated',
    'claimed',
    'satchel',
    'jacket',
    'noText',
    'hostile',
    'lost',
    'stolen',
    'confirmed',
    'recall',
    'investigation',
    'recycled',
    'opened',
  ] as const)
    add(`tapped-${name}`, await tapped(name))
  add('tapped-mismatch', await alteredItem(world))
  add('tapped-token', `${url}/token/${tokenOf('claimed')}?${await tap('claimed')}`)
  for (const name of ['minted', 'activated', 'claimed', 'stolen', 'recycled'] as const)
    add(`untapped-${name}`, url + (await pathOf(name)))
  add('untapped-token', `${url}/token/${tokenOf('chair')}`)
  add('incomplete', `${url}${await pathOf('activated')}?${(await tap('activated')).slice(0, -4)}`)
  const [skipped, later] = [await tapped('chair'), await tapped('chair')]
  await fetch(later)
  add('replayed', skipped)
  add('counterfeit', `${url}${await pathOf('activated')}?picc=${'a1'.repeat(16)}&cmac=${'b2'.repeat(8)}`)
  add('unbound', `${url}${await pathOf('activated')}?${(await world.tagOf(newUid()))()}`)
  add('other-item', `${url}${await pathOf('activated')}?${await tap('bound')}`)
  add('class', `${url}${(await pathOf('activated')).split('/21/')[0]}`)
  add('bad-link', `${url}/01/09520001000011/21/M41-002208`, 400)
  add('bad-token', `${url}/token/0x2a`, 400)
  add('unknown', `${url}/token/4711`, 404)
  add('rate-limited', `${world.limitedUrl}${await pathOf('activated')}`, 429)
  add('not-configured', `${world.bareUrl}/token/${tokenOf('bound')}?${await tap('bound')}`, 503)
  add('chain', `${world.downUrl}/token/1`, 502)
  const offer = await openOffer(world)
  add('offer', `${url}/t/${offer}`)
  add('offer-over', `${url}/t/${offer.replace(/\d+$/, '9')}`, 404)
  add('challenge', `${world.downUrl}/token/1?${world.downTap()}`)
  return states
}

/** A standing offer of the operator to a consumer of the demonstration. */
async function openOffer(world: PageWorld): Promise<string> {
  const [operator, , consumer] = publishedAccounts(3)
  const tokenId = await world.mint({ name: 'Offered Lounge Chair', brand: 'Arbor' })
  const { block, offer } = await world.components.transferReads.position(tokenId)
  const terms = {
    tokenId,
    to: consumer?.address ?? '0x',
    expiry: block.timestamp + 72n * 3_600n,
    messageHash: noMetadata,
  }
  const message = { ...terms, from: operator?.address ?? '0x', nonce: offer.nonce }
  const typedData = registryTypedData(world.components.transferReads.domain, 'InitiateTransfer', message)
  const signature = (await operator?.signTypedData(typedData)) ?? '0x'
  await world.write({ kind: 'initiateTransferBySig', ...terms, signature })
  return `${tokenId}-${offer.nonce + 1}`
}

/** A tapped item whose text was altered in the database. */
async function alteredItem(world: PageWorld): Promise<string> {
  const uid = newUid()
  const name = `Altered ${Date.now()}`
  const tokenId = await world.mint({ name })
  await world.components.database.query('update metadata set body = replace(body, $1, $2)', [
    name,
    `${name}, but better`,
  ])
  await world.write({ kind: 'bindTag', tokenId, tagHash: world.components.tagHash?.(uid) ?? '0x' })
  const next = await world.tagOf(uid)
  return `${world.url}/token/${tokenId}?${next()}`
}
