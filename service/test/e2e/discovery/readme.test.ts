/** The commands of the README work: each is run, in its order, beside a real `touchstone dev`. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { touchstone, type Running } from '../../support/processes/cli.ts'
import { eventually } from '../../support/wait.ts'

const cli = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))
const readme = readFileSync(new URL('../../../../README.md', import.meta.url), 'utf8')

/** Lines of the blocks without a language: what is to be typed. `…` stands for something of the reader's own. */
const commands = readme
  .split(/^```/m)
  .filter((block, index) => index % 2 === 1 && block.startsWith('\n'))
  .flatMap((block) => block.replaceAll('\\\n', '').split('\n'))
  .filter((line) => /^(curl|npx touchstone|printf|export) /.test(line) && !line.includes('…'))

/** What a command must show for the sentence around it to be true. */
const shows: readonly [RegExp, RegExp][] = [
  [/^curl http\S+\/api\/asset\/5$/, /"state":"CLAIMED"/],
  [/^npx touchstone verify /, /Every field agrees with the chain\./],
  [/emulate --tap/, /"verified":true/],
  [/tag template/, /4000E0C1FF122A0000500000500000/],
  [/tag keys/, /authenticate 0/],
  [/tag import/, /2 of 2 rows .* 2 done/],
  [/asset show 15/, /ACTIVATED/],
  [/asset flag 15/, /FLAGGED/],
  [/--uid 04A1B2C3D4E501 --tap/, /"tokenId":"15"/],
  [/products\(first: 3/, /"totalCount":3,.*"brand":|"edges":\[\{"node":\{"id"/],
  [/registerProduct/, /"success":true,"errors":\[\],"txHash":"0x[0-9a-f]{64}","product":\{"id":"\d+","state":"MINTED"/],
  [/index verify/, /all agree with the chain/],
  [/asset history 5/, /back to the minting/],
  [/touchstone pay 5/, /Both signatures are valid/],
  [/\/mcp /, /"structuredContent":\{"version":"1","token_id":"5"/],
  [/message:send/, /TASK_STATE_COMPLETED.*"flagged":true/],
  [/reputation$/, /"by_tag":\[\{"tag1":"starred"/],
  [/\/health$/, /"status":"ok"/],
  [/linkType=linkset/, /ref\.gs1\.org\/voc\/defaultLink/],
]

describe('the README', () => {
  let folder: string
  let service: Running
  let text = ''
  /** What earlier commands of the reader's shell have set; the key is shown on stderr as well. */
  const exported: string[] = []
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'touchstone-readme-'))
    service = touchstone(['dev'], {
      DATA_DIR: join(folder, 'data'),
      VERIFICATION_PORT: '0',
      GATEWAY_PORT: '0',
      GRAPHQL_PORT: '0',
      LOCAL_CHAIN_PORT: '0',
    })
    service.child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await eventually(() => text.includes('Ctrl-C') || service.child.exitCode !== null)
  })
  after(async () => {
    service.child.kill('SIGTERM')
    await service.ended
    await rm(folder, { recursive: true, force: true })
  })

  it('has commands', () => assert.ok(commands.length >= 12, commands.join('\n')))

  for (const command of commands) {
    it(command, async () => {
      const base = /Touchstone runs: (http:\S+)/.exec(text)?.[1] ?? ''
      const rpc = /chain +(http:\S+)/.exec(text)?.[1] ?? ''
      const [, gateway = ''] = /gateway +(http:\S+)\/health/.exec(text) ?? []
      const [, graphql = ''] = /playground +(http:\S+)\/playground/.exec(text) ?? []
      const here = [...exported, command]
        .join('\n')
        .replaceAll('http://127.0.0.1:8081', gateway)
        .replaceAll('http://127.0.0.1:8082', graphql)
        .replaceAll('http://127.0.0.1:8080', base)
        .replaceAll('http://127.0.0.1:8545', rpc)
        .replace(/touchstone verify (\d+) /, `touchstone verify $1 --base-url ${base} `)
        .replaceAll('npx touchstone', `'${process.execPath}' '${cli}'`)
        .replace(/^curl /m, 'curl -sS ')
      const env = { ...process.env, DATA_DIR: join(folder, 'data') }
      const { stdout, stderr } = await promisify(execFile)('/bin/bash', ['-c', here], {
        cwd: folder,
        env,
        timeout: 300_000,
      })
      assert.equal(stderr.replaceAll(/^(?: .*|Key \w+ \(my-app\) with scope .*)\n/gm, ''), '')
      if (command.startsWith('export ')) exported.push(command)
      for (const [which, what] of shows) if (which.test(command)) assert.match(stdout, what)
    })
  }

  it('shows the flag at the last tap', async () => {
    assert.match(commands.findLast((line) => line.includes('04A1B2C3D4E501 --tap')) ?? '', /^curl/)
    const { stdout } = await promisify(execFile)(process.execPath, [cli, 'asset', 'show', '15'], {
      env: { ...process.env, DATA_DIR: join(folder, 'data') },
    })
    assert.match(stdout, /^flagged +true/m)
  })
})
