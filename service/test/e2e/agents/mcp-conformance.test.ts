/**
 * The protocol's own conformance suite against the endpoint (spec §4.3). Checks that want resources, prompts or the suite's diagnostic
 * tools do not apply: the service has none. Every other check must pass.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { testTools } from '../../support/agents/assets.ts'
import { startMcp } from '../../support/agents/mcp.ts'
import { testFolder } from '../../support/folder.ts'

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

const suite = fileURLToPath(
  new URL('../../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)

/** With the fewest checks that must have passed. */
const scenarios = [
  ['tools-list', '2025-06-18', 2],
  ['tools-list', '2025-11-25', 3],
  ['tools-list', '2026-07-28', 4],
  ['dns-rebinding-protection', '2025-11-25', 2],
  ['dns-rebinding-protection', '2026-07-28', 2],
  ['server-initialize', '2025-06-18', 2],
  ['server-initialize', '2025-11-25', 2],
  ['ping', '2025-11-25', 2],
  ['server-stateless', '2026-07-28', 20],
  ['http-header-validation', '2026-07-28', 3],
  ['caching', '2026-07-28', 3],
] as const

/** The suite's message for a check that it cannot make here. */
const notApplicable =
  /^Not testable: server does not list the diagnostic tool|^(?:resources|prompts)\/[\w/]+ returned JSON-RPC error -32601/

const mcp = await startMcp(testTools())
after(() => mcp.close())

describe('MCP conformance', () => {
  const folder = testFolder()

  for (const [scenario, revision, fewest] of scenarios)
    it(`${scenario} at ${revision}`, async () => {
      const checks = await conformance(scenario, revision)
      const failed = checks.filter(
        ({ status, errorMessage = '' }) => status === 'FAILURE' && !notApplicable.test(errorMessage),
      )
      assert.deepEqual(
        failed.map(({ id, errorMessage }) => `${id}: ${errorMessage}`),
        [],
      )
      const passed = checks.filter(({ status }) => status === 'SUCCESS')
      assert.ok(passed.length >= fewest, `only ${passed.length} checks passed`)
    })

  async function conformance(scenario: string, revision: string): Promise<Check[]> {
    const output = join(folder, `${scenario}-${revision}`)
    const args = [
      suite,
      'server',
      '--url',
      mcp.mcpUrl,
      '--scenario',
      scenario,
      '--spec-version',
      revision,
      '-o',
      output,
    ]
    // Its exit code also counts what does not apply.
    await new Promise<void>((resolve) => execFile(process.execPath, args, () => resolve()))
    const [run = ''] = await readdir(output)
    return JSON.parse(await readFile(join(output, run, 'checks.json'), 'utf8')) as Check[]
  }
})
