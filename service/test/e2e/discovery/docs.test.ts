/**
 * The commands of the README and of docs/*.md work: each is run once, in the order of the pages, beside a real `touchstone dev`, and
 * shows what the page says. Commands stand in blocks without a language.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { docsNames } from '../../../src/hosts/verification/routes/docs.ts'
import { cliInShell, inherited, startDev } from '../../support/processes/cli.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'

const commandsOf = (path: string) =>
  readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
    .split(/^```/m)
    .filter((block, index) => index % 2 === 1 && block.startsWith('\n'))
    .flatMap((block) => block.replaceAll('\\\n', '').trim().split('\n'))

/** Lines of the README that need nothing of the reader's own: there stands `…`. */
const readme = commandsOf('README.md').filter(
  (line) => /^(curl|touchstone|printf|export) /.test(line) && !line.includes('…'),
)
const pages = docsNames.map((name) => ({ name, commands: commandsOf(`docs/${name}.md`) }))

/** Output that a command must show for the page to be true; the first matching row counts. */
const shows: readonly [RegExp, RegExp][] = [
  [/04A1B2C3D4E501 --tap/, /"verified":true.*"tokenId":"15"/],
  [/--format apdu/, /authenticate 0/],
  [/asset show 15/, /ACTIVATED/],
  [/asset flag 15/, /FLAGGED/],
  [/linkType=linkset/, /ref\.gs1\.org\/voc\/defaultLink/],
  [/Maison Orvelle/, /"totalCount":\d+,.*"edges":\[\{"node":\{"id"/],
  [/order-1007/, /"success":true,"errors":\[\],"txHash":"0x[0-9a-f]{64}","product":\{"id":"\d+","state":"MINTED"/],
  [/Is 7 flagged/, /TASK_STATE_COMPLETED.*"flagged":true/],
  [/batch import/, /^Batch my-\S+ imported[^]*\nProved by tag 04[0-9A-F]{12}, tap \d+,/],
  [/^printf .*\.key$/, /^[0-9A-F\n]+$/],
  [/batch create watches/, /^Batch watches made/],
  [/^export /, /^ts_live_/],
  [/\/api\/asset\/5\/proof/, /"verdict":.*"proof":\{"header"/],
  [/If-None-Match/, /^304\n$/],
  [/^curl \S+\/api\/asset\/5$/, /"state":"CLAIMED"/],
  [/^curl \S+\/api\/asset\/6$/, /"flagged":true/],
  [/^curl \S+\/api\/asset\/3$/, /"state":"FLAGGED"/],
  [/^curl \S+\/api\/asset\/0x7$/, /INVALID_TOKEN_ID/],
  [/^curl \S+\/api\/asset\/999999$/, /ASSET_NOT_FOUND/],
  [/\/api\/metadata\//, /Satchel No\. 7/],
  [/touchstone verify /, /Every field agrees with the chain\./],
  [/tag doctor/, /Nothing is wrong with this address/],
  [/\/api\/dpp\/.*emulate|emulate.*\/api\/dpp\//, /"DigitalProductPassport"[^]*"S7-1182"/],
  [/04B1B2C3D4E501 --tap/, /"verified":true.*"tokenId":"\d+"/],
  [/emulate --tap/, /"verified":true/],
  [/\/api\/dpp\//, /"verified":false.*picc or cmac/],
  [/\/api\/product\//, /"@type":"Product"[^]*"evidence":\[\{/],
  [/dppsByProductIds/, /"results":\[\{"productId":"09520003000001","digitalProductPassportId":/],
  [/dppsByProductId\//, /"granularity":"model"[^]*"elements":\[/],
  [/did\.json/, /"id":"did:web:/],
  [/linkset/, /linkset/],
  [/--json > proof\.json/, /"attestation": \{[^]*"payment": \{/],
  [/touchstone pay /, /Both signatures are valid/],
  [/^curl -s -D - \S+\/verify/, /^HTTP\/1\.1 402 [^]*PAYMENT-REQUIRED: [^]*"x402Version":1/],
  [/well-known\/x402/, /"x402Versions":\[1,2\]/],
  [/:8081\/health/, /"status":"ok"/],
  [/attestation\.json/, /"status":"active"/],
  [/key create back-office/, /^ts_live_/],
  [/tapAnomalies/, /"taps":\{"edges":\[[^]*"tapAnomalies":\{"edges":\[/],
  [/touchstone export products/, /^id,tag_id,name,[^\n]*,cursor\n1,/],
  [/key create .* > (?:till-)?key\.txt/, /^ts_live_/],
  [/approval list/, /^(?:No request waits for approval\.|There is no request yet\.)$/m],
  [/chain roles/, /version 2, at block[^]*Nothing is missing\.$/m],
  [/audit list/, /(?:key:|local:)/],
  [/audit verify/, /\d+:0x[0-9a-f]{64}/],
  [/audit head/, /^head \d+:0x[0-9a-f]{64}/],
  [/audit export --cef/, /^CEF:0\|Touchstone\|/],
  [/audit export/, /^\{"seq":/],
  [/issuer rotate/, /key-1 \(ES256\) signs from now on/],
  [/issuer list/, /key-2 +Ed25519 +active/],
  [/attest key list/, /active .* signs/],
  [/attest key add/, /is announced/],
  [/key list/, /read,write/],
  [/registerProduct/, /"success":true.*"state":"MINTED"/],
  [/transferTypedData/, /"success":true.*"primaryType":"InitiateTransfer"/],
  [/events\(first/, /"oldest":"\d+-\w+".*"position":"\d+-\w+","kind":"(REGISTERED|TRANSFER)"/],
  [/product\(id/, /"state":"CLAIMED"/],
  [/products\(/, /"totalCount":\d+/],
  [/batch create/, /spring-watches/],
  [/tag template/, /4000E0C1FF12230000490000490000/],
  [/tag prepare/, /^2 chips prepared in /],
  [/^printf /, /^uid,gtin,/],
  [/tag import/, /2 of 2 rows .* 2 done/],
  [/asset flag 3/, /FLAGGED/],
  [/asset resolve 3/, /ACTIVATED/],
  [/asset history/, /events up to block \d+, back to the minting/],
  [/batch list/, /spring-watches/],
  [/privacy export/, /^\{"kind":"item","tokenId":"15"[^]*"kind":"tap"/],
  [/privacy erase/, /\d  taps of the ledger\n[^]*Nothing was erased; repeat the command with --yes\./],
  [/touchstone backup verify /, /^\d+ rows of \d+ tables and \d+ files, as they were at 20[^]*can be restored/],
  [/touchstone backup /, /\d+ rows of \d+ tables and \d+ files/],
  [/touchstone migrate --check/, /Nothing is missing/],
  [/touchstone migrate/, /Nothing was missing/],
  [/index status/, /behind +0 blocks/],
  [/index verify/, /all agree with the chain/],
  [/eth_call/, /"result":"0x[0-9a-f]{320}"/],
  [/tools\/list/, /verify_asset[^]*get_lifecycle_history[^]*check_flagged/],
  [/"verify_asset","arguments"/, /"structuredContent":\{"version":"1","token_id":"5"/],
  [/"get_lifecycle_history","arguments"/, /"available":true/],
  [/mcp\.json/, /streamable-http/],
  [/agent-card\.json/, /"skills"/],
  [/message:send/, /TASK_STATE_COMPLETED[^]*"CLAIMED"/],
  [/SendMessage/, /TASK_STATE_COMPLETED[^]*"flagged":true/],
  [/\/api\/agent$/, /eip-8004#registration-v1/],
  [/\/reputation/, /^(?=[^]*"sybil_resistant":false)[^]*"by_tag":\[\{"tag1":"starred"/],
  [/\/api\/agents\/0$/, /"agent_id":"0"/],
]

/** Demonstration addresses as the pages have them, and the listeners of this one. */
const places = {
  'http://127.0.0.1:8080': 'verification',
  'http://127.0.0.1:8081': 'gateway',
  'http://127.0.0.1:8082': 'graphql',
  'http://127.0.0.1:8545': 'rpc',
} as const

/** Lines that a command prints to the terminal although its output is redirected. */
const expectedNotes =
  /^(?: .*|Key \w+ \([\w-]+\) with scope .*|Both signatures are valid: .*|The file holds secrets, .*|Last cursor: .*)\n/gm

describe('the documentation', () => {
  let folder: string
  let service: Awaited<ReturnType<typeof startDev>>
  let env: Record<string, string>
  /** Output of each command, for the pages that repeat it. */
  const outputs = new Map<string, string>()
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'touchstone-docs-'))
    env = { DATA_DIR: join(folder, 'data') }
    await copyEmptyPglite(join(folder, 'data', 'store'))
    service = await startDev({ ...env, RATE_LIMIT_ASSET: '0', RATE_LIMIT_TAP: '0' })
  })
  after(async () => {
    await service?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  describe('the README', () => {
    it('has commands', () => assert.ok(readme.length >= 12, readme.join('\n')))

    readme.forEach(holds)

    it('shows the flag at the last tap', async () => {
      assert.match(readme.findLast((line) => line.includes('04A1B2C3D4E501 --tap')) ?? '', /^curl/)
      assert.match(await outputOf('touchstone asset show 15'), /^flagged +true/m)
    })
  })

  for (const { name, commands } of pages) {
    describe(`docs/${name}.md`, () => {
      commands.forEach(holds)
    })
  }

  function holds(command: string): void {
    it(command, async () => {
      assert.match(command, /^(curl|touchstone|printf|export) /, 'a block without a language holds commands only')
      const [, what] = shows.find(([which]) => which.test(command)) ?? []
      assert.ok(what, 'it is not said what this command shows')
      if (!outputs.has(command)) outputs.set(command, await outputOf(command))
      assert.match(outputs.get(command) ?? '', what)
    })
  }

  /** Returns what the command printed, wrote into its file or gave its variable, which later commands see. */
  async function outputOf(command: string): Promise<string> {
    const [, variable] = /^export (\w+)=/.exec(command) ?? []
    const [, file] = / > ([\w.-]+)$/.exec(command) ?? []
    const here = Object.entries(places)
      .reduce(
        (line, [address, host]) => line.replaceAll(address, service.urls[host]),
        variable === undefined ? command : `${command}; printf %s "$${variable}"`,
      )
      .replace(/touchstone verify (\d+) /, `touchstone verify $1 --base-url ${service.urls.verification} `)
      .replace(/^curl (-s )?/, 'curl -sS --max-time 120 ')
    const { stdout, stderr } = await promisify(execFile)('/bin/bash', ['-c', `${cliInShell}\n${here}`], {
      cwd: folder,
      env: { ...inherited, ...env },
      timeout: 300_000,
    })
    assert.equal(stderr.replaceAll(expectedNotes, ''), '')
    if (variable !== undefined) env[variable] = stdout
    return file === undefined ? stdout : readFileSync(join(folder, file), 'utf8')
  }
})
