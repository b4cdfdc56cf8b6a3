/** Tools that answer at once, and one that waits for `release`. */
import type { ToolAnswer, Tools } from '../../../src/agents/tools/tools.ts'

const ref = {
  chain_id: 84532,
  contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
  token_id: '42',
  block_number: 7,
  block_hash: `0x${'ab'.repeat(32)}`,
} as const

const status = { network: 'base-sepolia', audit_status: 'unaudited', production_ready: false } as const
const state = { flagged: false, state: 'CLAIMED', state_code: 4, authentic: true } as const
const flagCheck = { version: '1', token_id: '42', ...state, chainRef: ref, ...status } as const
export const verdict = { ...flagCheck, owner_commitment: null } as const

/** Token 1 does not exist; token 2 waits for the next `release`; token 3 is a fault. `calls` are what was asked. */
export function scriptedTools(): { tools: Tools; calls: [string, unknown][]; release: () => void } {
  const calls: [string, unknown][] = []
  let waiting = Promise.withResolvers<void>()
  const tool = (name: string, structured: object) => async (args: unknown) => {
    calls.push([name, args])
    const { token_id } = args as { token_id: string }
    if (token_id === '1') return noAsset
    if (token_id === '2') await waiting.promise
    if (token_id === '3') throw new Error('a fault of the tool')
    return { ok: true, structured } as ToolAnswer
  }
  const tools: Tools = {
    verify_asset: tool('verify_asset', verdict),
    get_lifecycle_history: tool('get_lifecycle_history', { available: false }),
    check_flagged: tool('check_flagged', flagCheck),
  }
  const release = () => {
    waiting.resolve()
    waiting = Promise.withResolvers()
  }
  return { tools, calls, release }
}

export const noAsset: ToolAnswer = {
  ok: false,
  error: { version: '1', error: { code: 'ASSET_NOT_FOUND', message: 'No asset has this token id.' } },
}
