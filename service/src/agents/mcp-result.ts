/**
 * What a tool answered as an MCP tool result (spec §4.3). Supplier text stands in `structuredContent.untrusted` and in a block of its own
 * that is meant for the user; an error has no structured content.
 */
import type { ToolAnswer } from './tools.ts'

type TextBlock = {
  readonly type: 'text'
  readonly text: string
  readonly annotations?: { readonly audience: ('assistant' | 'user')[]; readonly priority: number }
}
export type CallResult = {
  readonly content: TextBlock[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: true
}

export function callResultOf(answer: ToolAnswer): CallResult {
  if (!answer.ok) return { content: [{ type: 'text', text: JSON.stringify(answer.error) }], isError: true }
  const { structured, untrusted } = answer
  const content = [block(untrusted === undefined ? structured : { ...structured, untrusted: undefined }, forBoth)]
  if (untrusted !== undefined) content.push(block(untrusted, forUser))
  return { content, structuredContent: structured }
}

const forBoth = { audience: ['assistant', 'user'], priority: 1 } satisfies TextBlock['annotations']
const forUser = { audience: ['user'], priority: 0 } satisfies TextBlock['annotations']

function block(value: object, annotations: TextBlock['annotations']): TextBlock {
  return { type: 'text', text: JSON.stringify(value), ...(annotations && { annotations }) }
}
