/**
 * Calls in Markdown and the answers below them. A block without a language holds commands, the block `answer` after it what they print. In an
 * answer `…` stands for any text; hashes, times and block numbers are examples.
 */
export type Call = {
  readonly commands: readonly string[]
  /** Null: the page shows none. */
  readonly answer: string | null
  /** Place of the answer in the source, or where it belongs. */
  readonly from: number
  readonly to: number
}

export function callsOf(markdown: string): readonly Call[] {
  const blocks = [...markdown.matchAll(/^```(\w*)\n([^]*?)^```\n?/gm)].map((match) => ({
    language: match[1] ?? '',
    text: match[2] ?? '',
    from: match.index,
    to: match.index + match[0].length,
  }))
  return blocks.flatMap(({ language, text, to }, index) => {
    if (language !== '') return []
    const next = blocks[index + 1]
    const isAnswered = next?.language === 'answer' && markdown.slice(to, next.from).trim() === ''
    return {
      commands: text.replaceAll('\\\n', '').trim().split('\n'),
      answer: isAnswered ? next.text.trimEnd() : null,
      from: isAnswered ? next.from : to,
      to: isAnswered ? next.to : to,
    }
  })
}

/** Returns the source with this answer below the call; an empty one removes the block. */
export function withAnswer(markdown: string, { from, to, answer }: Call, outputs: readonly string[]): string {
  const text = shownAnswer(outputs)
  const block = text === '' ? '' : `\`\`\`answer\n${text}\n\`\`\`\n`
  return markdown.slice(0, from) + (answer === null && block !== '' ? '\n' : '') + block + markdown.slice(to)
}

/** Returns whether the answer on the page is one of these outputs. */
export function isAnswerOf(shown: string, outputs: readonly string[]): boolean {
  const parts = dense(examples.reduce((text, example) => text.replace(example, '…'), shown))
    .split(/…+/)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*?')}$`).test(dense(outputs.map(wholeOf).join('')))
}

/** Values that another run prints otherwise. */
const examples: readonly RegExp[] = [
  /(?:0x)?[\w-]*…[\w-]*/g, // shortened hashes, keys and tokens
  /\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z| UTC)?/g,
  /(?<="\w*(?:[bB]lock|[tT]ime|[cC]ounter|[sS]econds|[dD]eadline|[cC]ursor|[pP]osition|\b(?:id|iat|exp|oldest|newest|issued)|At)\w*": )"?[^\s",{}[\]]+"?/g,
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  /\b(?:[a-z]+\d|\d+[a-z])[a-z\d]{4,}\b/g, // ids of API keys
  /\b\d{9,}\b/g,
  /(?<![\w"#]|": )\d+(?:\.\d+)?(?=\s|,|:|$)(?! verified)/gm, // counts in text
]

/** Spaces and line breaks do not count. */
function dense(text: string): string {
  return text.replace(/\s+/g, '')
}

function wholeOf(output: string): string {
  const json = parsed(output)
  return json === undefined ? output : JSON.stringify(json)
}

const mostLines = 32

/** Formats outputs for a page: JSON over several lines, hashes shortened, the rest of what is long left out. */
export function shownAnswer(outputs: readonly string[]): string {
  return outputs
    .filter((output) => output !== '')
    .map(shownOutput)
    .join('\n')
}

function shownOutput(output: string): string {
  const json = parsed(output)
  if (json === undefined) {
    const lines = shortened(output.trimEnd()).split('\n')
    return (lines.length > mostLines ? [...lines.slice(0, mostLines - 4), '…'] : lines).join('\n')
  }
  for (let depth = 6; depth > 1; depth--) {
    const text = pretty(json, depth, '')
    if (text.split('\n').length <= mostLines) return text
  }
  return pretty(json, 1, '')
}

function parsed(output: string): unknown {
  try {
    const value: unknown = JSON.parse(output)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const mostWidth = 100

function pretty(value: unknown, depth: number, indent: string): string {
  if (typeof value === 'string') return JSON.stringify(longText(value))
  if (typeof value !== 'object' || value === null) return String(value)
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const entries = Object.entries(value)
  if (entries.length === 0) return `${open}${close}`
  if (depth === 0) return `${open} … ${close}`
  const name = (key: string) => (isList ? '' : `${JSON.stringify(key)}: `)
  const shown = (isList ? entries.slice(0, 3) : entries).map(
    ([key, entry]) => name(key) + pretty(entry, depth - 1, `${indent}  `),
  )
  if (shown.length < entries.length) shown.push('…')
  const line = isList ? `[${shown.join(', ')}]` : `{ ${shown.join(', ')} }`
  if (line.length + indent.length <= mostWidth && !line.includes('\n') && (indent !== '' || entries.length === 1))
    return line
  return `${open}\n${shown.map((entry) => `${indent}  ${entry}`).join(',\n')}\n${indent}${close}`
}

function longText(text: string): string {
  const short = shortened(text)
  return short.length > 120 ? `${short.slice(0, 90)}…` : short
}

function shortened(text: string): string {
  return text
    .replaceAll('\r', '')
    .replace(/0x[0-9a-fA-F]{12,}/g, (hex) => `${hex.slice(0, 6)}…${hex.slice(-4)}`)
    .replace(/ts_live_[\w-]{20,}/g, 'ts_live_…')
    .replace(/\b[\w-]{60,}\b/g, (token) => `${token.slice(0, 6)}…${token.slice(-4)}`)
}
