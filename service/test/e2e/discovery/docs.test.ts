/**
 * The commands of the README and of docs/*.md work. Each is run once, in the order of the pages, beside a real `touchstone dev`, and prints
 * the answer that the page shows. `UPDATE_ANSWERS=1` writes the answers that have changed.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { docsNames } from '../../../src/hosts/verification/docs/sources.ts'
import { callsOf, isAnswerOf, shownAnswer, withAnswer, type Call } from '../../support/docs/answers.ts'
import { testFolder } from '../../support/folder.ts'
import { serve } from '../../support/http.ts'
import { startShell, type Shell } from '../../support/docs/shell.ts'
import { startDev } from '../../support/processes/cli.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'

const fileOf = (path: string) => new URL(`../../../../${path}`, import.meta.url)
const pages = ['README.md', ...docsNames.map((name) => `docs/${name}.md`)].map((path) => ({
  path,
  calls: callsOf(readFileSync(fileOf(path), 'utf8')),
}))

/** Demonstration addresses as the pages have them, and the listeners of this one. */
const places = {
  'http://127.0.0.1:8080': 'verification',
  'http://127.0.0.1:8081': 'gateway',
  'http://127.0.0.1:8082': 'graphql',
  'http://127.0.0.1:8545': 'rpc',
} as const

describe('the documentation', () => {
  const folder = testFolder()
  let service: Awaited<ReturnType<typeof startDev>>
  let shell: Shell
  /** Output of each command, for the pages that repeat it. */
  const outputs = new Map<string, string>()
  before(async () => {
    const env = { DATA_DIR: join(folder, 'data') }
    await symlink(fileURLToPath(fileOf('node_modules')), join(folder, 'node_modules'))
    await copyEmptyPglite(join(folder, 'data', 'store'))
    service = await startDev({ ...env, RATE_LIMIT_ASSET: '0', RATE_LIMIT_TAP: '0' })
    shell = await startShell(env, folder)
  })
  after(async () => {
    shell?.close()
    await service?.stop()
  })

  for (const { path, calls } of pages) {
    describe(path, () => {
      for (const [index, call] of calls.entries())
        it(call.commands.join('\n'), async () => {
          const printed: string[] = []
          for (const command of call.commands) printed.push(await outputOf(command))
          check(path, index, call, printed)
        })
    })
  }

  it('decides in a shop app as docs/verify-in-a-shop-app.md does', async () => {
    const source = readFileSync(fileOf('docs/verify-in-a-shop-app.md'), 'utf8')
    const [, program = ''] = /^```ts\n(type Decision[^]*?)^```/m.exec(source) ?? []
    const module = `data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(program))}`
    const { decide } = (await import(module)) as { decide: (link: string, origin: string) => Promise<string> }
    const origin = service.urls.verification
    const tap = async (uid: string, ...options: string[]) => {
      const command = ['touchstone tag emulate --batch demo --uid', uid, ...options, '--tap'].join(' ')
      return (await shell.run(command)).stdout.trim()
    }
    const [bound, activated, claimed] = ['0444454D4F0001', '0444454D4F0002', '0444454D4F0004']
    assert.equal(await decide(await tap(activated), origin), 'sell')
    assert.equal(await decide(await tap(claimed), origin), 'ask the owner')
    assert.equal(await decide(await tap(bound), origin), 'stop')
    assert.equal(await decide((await tap(activated)).replace(/cmac=..../, 'cmac=0000'), origin), 'not verified')
    // Chips hold the link of a page.
    for (const path of ['/tap', '/01/09520001000010/21/M41-002208'])
      assert.equal(await decide((await tap(activated)).replace('/api/verify', path), origin), 'sell', path)
    // A blank chip can hold the link of a host that says yes to everything.
    let asked = 0
    const forger = await serve((_, response) => {
      asked += 1
      response.end('{"verified":true,"asset":{"flagged":false,"lifecycleState":"ACTIVATED"}}')
    })
    const forged = (await tap(activated)).replace(origin, forger.url)
    for (const link of [forged, `${forger.url}/x`, origin.replace('//', '//a@') + '/x', 'touchstone'])
      assert.equal(await decide(link, origin), 'not verified', link)
    assert.equal(asked, 0)
    await forger.close()
  })

  /** Returns what the command printed. A file that it writes is for later commands. */
  async function outputOf(command: string): Promise<string> {
    assert.match(
      command,
      /^(curl|(node_modules\/\.bin\/)?touchstone|printf|cat) /,
      'a block without a language holds commands only',
    )
    const known = outputs.get(command)
    if (known !== undefined) return known
    const here = Object.entries(places)
      .reduce((line, [address, host]) => line.replaceAll(address, service.urls[host]), command)
      .replace(/touchstone verify (\d+) /, `touchstone verify $1 --base-url ${service.urls.verification} `)
      .replace(/^curl (-s )?/, 'curl -sS --max-time 120 ')
    const { stdout, stderr } = await shell.run(here)
    const shown = stdout !== '' ? stdout : stderr // besides its output a command prints its progress
    const printed = Object.entries(places)
      .reduce((text, [address, host]) => named(text, service.urls[host], address), shown)
      .replaceAll(folder, '/srv/touchstone')
      .replaceAll(`local:${userInfo().username}`, 'local:operator')
    outputs.set(command, printed)
    return printed
  }
})

// Pasted into a shell, such a line sets nothing: the & of a URL ends the command there.
it('marks the lines of a settings file as ini, and not as commands', () => {
  for (const { path } of pages)
    for (const [, block = ''] of readFileSync(fileOf(path), 'utf8').matchAll(/^```sh\n([^]*?)^```/gm))
      assert.doesNotMatch(block, /^[A-Z_]+=\S+$/m, path)
})

/** Replaces the host of a URL, also as did:web has it. */
function named(text: string, url: string, name: string): string {
  const [from, to] = [new URL(url).host, new URL(name).host]
  return text.replaceAll(from, to).replaceAll(encodeURIComponent(from), encodeURIComponent(to))
}

/** Fails when the page shows another answer, or none, unless the answers are to be written. */
function check(path: string, index: number, { answer }: Call, printed: readonly string[]): void {
  if (answer === null ? printed.join('') === '' : isAnswerOf(answer, printed)) return
  if (process.env['UPDATE_ANSWERS'] !== '1')
    assert.fail(
      `${path} shows\n${answer ?? 'nothing'}\nbut the commands print\n${shownAnswer(printed)}\nUPDATE_ANSWERS=1 writes it.`,
    )
  const source = readFileSync(fileOf(path), 'utf8')
  const call = callsOf(source)[index]
  assert.ok(call)
  writeFileSync(fileOf(path), withAnswer(source, call, printed))
}
