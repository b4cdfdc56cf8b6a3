/** `touchstone verify` on invalid input. Each case gets one sentence and exit code 2. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { testFolder } from '../../support/folder.ts'
import { serve } from '../../support/http.ts'
import { touchstone, warmProgram } from '../../support/processes/cli.ts'

const rpc = ['--rpc', 'http://127.0.0.1:1']
const address = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const hash = `0x${'ab'.repeat(32)}`

describe('touchstone verify rejects', () => {
  const folder = testFolder()
  let run: ReturnType<typeof warmProgram>
  before(async () => {
    await writeFile(join(folder, 'bundle.json'), '{"version":"1","verdict":{},"proof":{}}')
    run = warmProgram(folder)
  })

  async function rejects(args: readonly string[], sentence: RegExp): Promise<void> {
    const { exit, out, err } = await run('verify', ...args)
    assert.deepEqual([exit, out], [2, ''], `${args.join(' ')}: ${err}`)
    assert.match(err, /^touchstone: [^\n]+\n$/)
    assert.match(err, sentence)
    assert.doesNotMatch(err, /secret/)
  }

  it('options that it would ignore', async () => {
    const url = 'http://127.0.0.1:1/api/asset/5'
    const alone = await touchstone(['verify', url, ...rpc, '--code-hash', hash], {}, folder).ended
    assert.deepEqual(alone, await run('verify', url, ...rpc, '--code-hash', hash))
    await rejects([url, ...rpc, '--code-hash', hash], /--code-hash needs --prove/)
    await rejects([url, ...rpc, '--records-slot', '3'], /--records-slot needs --prove/)
    await rejects([url, ...rpc, '--block-hash', hash], /--block-hash is for a bundle/)
    await rejects(['bundle.json', '--metadata', 'bundle.json'], /--metadata is for a verdict/)
    await rejects(['bundle.json', '--agree', '1'], /--agree needs --rpc/)
    await rejects(['bundle.json', '--max-age', '60'], /--max-age needs --rpc/)
    await rejects([url, ...rpc, '--contract', address, '--deployment', 'local'], /cannot be used with/)
  })

  it('the contract of the local chain at a provider elsewhere, where anyone can deploy at its address', async () => {
    for (const target of ['http://127.0.0.1:1/api/asset/5', 'bundle.json'])
      for (const deployment of ['local', 'local-v1'])
        await rejects(
          [target, ...rpc, '--rpc', 'https://sepolia.rpc.invalid', '--deployment', deployment],
          new RegExp(`${deployment} is the chain of npm start on this machine.*--contract`),
        )
  })

  it('a URL or a token id that is none, and says which', async () => {
    const notHttp = /neither a URL with http:\/\/ or https:\/\/, nor a token id, nor a file/
    await rejects(['localhost:8080/api/asset/5', ...rpc], notHttp)
    await rejects(['user:secret@verify.example/api/asset/5', ...rpc], notHttp)
    await rejects(['http://user:secret@verify exam ple/', ...rpc], notHttp)
    await rejects(['data:application/json,{}', ...rpc], notHttp)
    await rejects(['http://user:secret@127.0.0.1:1/api/asset/5', ...rpc], /holds a user name or password: leave it out/)
    await rejects(['5', ...rpc, '--base-url', 'http://:secret@127.0.0.1:1'], /--base-url holds a user name or password/)
    await rejects(['5', '--rpc', 'https://:secret@rpc.example'], /--rpc holds a user name or password/)
    await rejects(['5', '--rpc', 'localhost:8545'], /--rpc is no URL with http:\/\/ or https:\/\//)
    await rejects(['5', ...rpc, '--base-url', 'verify.example'], /--base-url is no URL with http:\/\/ or https:\/\//)
    for (const id of ['9'.repeat(79), String(2n ** 256n)]) {
      await rejects([id, ...rpc], /A token id is a decimal number below 2\^256/)
      await rejects([`http://127.0.0.1:1/api/asset/${id}`, ...rpc], /A token id is a decimal number below 2\^256/)
    }
    await rejects(['http://127.0.0.1:1/api/asset/%zz', ...rpc], /A token id is a decimal number/)
  })

  it('a file that is no document, and ends on one without an end', { timeout: 240_000 }, async () => {
    const at = (name: string) => join(folder, name)
    await mkdir(at('folder'))
    execFileSync('mkfifo', [at('fifo')])
    await writeFile(at('huge.json'), '')
    await truncate(at('huge.json'), 1_073_741_824)
    const noFile = /is not a regular file: save the document, and name that file/
    for (const name of ['folder', 'fifo', '/dev/zero', '/dev/null']) {
      await rejects([name, '--deployment', 'local'], noFile)
      await rejects(['http://127.0.0.1:1/api/asset/5', ...rpc, '--metadata', name], noFile)
    }
    await rejects(['huge.json', '--deployment', 'local'], /has more than 1 MB/)
  })

  it('a file that holds something else than a bundle, and says what to save', async () => {
    const texts: [name: string, text: string, sentence: RegExp][] = [
      ['page.html', '<!doctype html>', /no JSON.*\/proof/],
      ['empty.json', '', /no JSON.*\/proof/],
      ['verdict.json', '{"version":"1","chainRef":{}}', /holds a verdict.*\/proof/],
      ['twice.json', '{"version":"1","verdict":{"flagged":false,"flagged":true},"proof":{}}', /a name twice/],
    ]
    for (const [name, text, sentence] of texts) {
      await writeFile(join(folder, name), text)
      await rejects([name, '--deployment', 'local'], sentence)
    }
  })

  it('an answer that is no verdict, and says what to name', async (test) => {
    const answers: Record<string, [status: number, body: string, sentence: RegExp]> = {
      '/page': [200, '<!doctype html>', /no JSON.*URL of a verdict/],
      '/null': [200, 'null', /no JSON.*URL of a verdict/],
      '/twice': [200, '{"version":"1","authentic":true,"authentic":false}', /a name twice/],
      '/bundle': [200, '{"version":"1","verdict":{},"proof":{}}', /a proof bundle: save it, and name the file/],
      '/missing': [404, '{"version":"1","authentic":true}', /answered 404\./],
      '/away': [503, '{"error":{"code":"CHAIN_UNAVAILABLE\\u001b[2J"}}', /answered 503 CHAIN_UNAVAILABLEJ\./],
      '/large': [200, JSON.stringify({ version: 'x'.repeat(70_000) }), /more than 64 kB/],
    }
    const { url, close } = await serve((request, response) => {
      const [status, body] = answers[request.url ?? ''] ?? [500, '']
      response.writeHead(status).end(body)
    })
    test.after(close)
    for (const [path, [, , sentence]] of Object.entries(answers)) await rejects([url + path, ...rpc], sentence)
  })
})
