/**
 * `npm run bench:pages` measures when the verdict of a tap is painted on a slow telephone. The processor is four times as slow, the network
 * is a slow mobile one, and nothing is in the cache. It prints the time from the request of the tap until the headline is painted, with
 * requests and bytes so far. `--taps N` of each product and network (5).
 */
import { readOptions } from '../../scripts/options.ts'
import { chromium, type Browser, type CDPSession } from 'playwright-core'
import { args, desktop } from '../../service/test/support/pages/browser.ts'
import { verdictPaint, watchVerdict } from '../../service/test/support/pages/paint.ts'
import { startPageWorld } from '../../service/test/support/pages/pages.ts'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'

const { values } = readOptions({ options: { taps: { type: 'string', default: '5' } } })
const taps = Number(values.taps)
if (!(taps >= 1 && taps <= 100)) throw new Error('--taps takes a number of taps from 1 to 100.')

/** Milliseconds that the verdict may take. */
const wanted = 1_500
const slowdown = 4
const products = ['satchel', 'activated', 'stolen'] as const
/** Lighthouse and the developer tools of Chromium mean different networks by «slow 4G». The tools delay each request by nearly four times. */
const networks = [
  ['150 ms, 1.6 Mbit/s', { latency: 150, downloadThroughput: 200_000, uploadThroughput: 93_750 }],
  ['562 ms, 1.4 Mbit/s', { latency: 562.5, downloadThroughput: 180_000, uploadThroughput: 84_375 }],
] as const
type Network = (typeof networks)[number][1]

type Visit = { readonly ms: number; readonly requests: number; readonly bytes: number }

await bounded(300_000, async (made) => {
  await warnWhenBusy()
  const world = await startPageWorld()
  made.defer(() => world.end())
  const browser = await chromium.launch({ executablePath: desktop, args })
  made.defer(() => browser.close())
  await visit(browser, await world.tapped('claimed'), networks[0][1]) // the first page loads modules of the service
  console.log('network              product    requests     bytes   fastest    median   slowest')
  for (const [name, network] of networks)
    for (const product of products) {
      const visits: Visit[] = []
      for (let index = 0; index < taps; index += 1)
        visits.push(await visit(browser, await world.tapped(product), network))
      const times = visits.map(({ ms }) => ms).toSorted((one, other) => one - other)
      const shown = [times[0], times[Math.floor(times.length / 2)], times.at(-1)].map((ms = 0) => `${ms.toFixed(0)} ms`)
      const [{ requests, bytes } = { requests: 0, bytes: 0 }] = visits
      const cells = [String(requests).padStart(8), String(bytes).padStart(9), ...shown.map((cell) => cell.padStart(9))]
      const late = times.filter((ms) => ms > wanted).length
      console.log(`${name}   ${product.padEnd(9)} ${cells.join(' ')}${late === 0 ? '' : `   ${late} of ${taps} late`}`)
    }
})

/** Opens a tapped link in a browser that has seen nothing before. */
async function visit(browser: Browser, url: string, network: Network): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 390, height: 740 }, deviceScaleFactor: 3 })
  try {
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Network.emulateNetworkConditions', { offline: false, ...network })
    await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
    const loaded = transfersOf(session)
    await watchVerdict(page)
    await page.goto(url, { waitUntil: 'commit' })
    const ms = await verdictPaint(page)
    const before = loaded().filter(({ at }) => at <= ms / 1_000)
    return { ms, requests: before.length, bytes: before.reduce((sum, { bytes }) => sum + bytes, 0) }
  } finally {
    await context.close()
  }
}

/** Counts what arrives, by seconds since the first request. */
function transfersOf(session: CDPSession): () => readonly { readonly at: number; readonly bytes: number }[] {
  let began: number | undefined
  const finished: { at: number; bytes: number }[] = []
  session.on('Network.requestWillBeSent', ({ timestamp }) => (began ??= timestamp))
  session.on('Network.loadingFinished', ({ timestamp, encodedDataLength }) => {
    finished.push({ at: timestamp - (began ?? timestamp), bytes: encodedDataLength })
  })
  return () => finished
}
