/** Compiles one contract for a mutation run: without the optimizer, which takes more time than it saves there. */
import solc from 'solc'

/** Returns the text of a source file by its path. Throws where there is none. */
export type SourceFiles = (path: string) => string

export type SyntaxNode = Readonly<{
  nodeType: string
  src: string
  operator?: string
  prefix?: boolean
  kind?: string
  leftExpression?: SyntaxNode
  rightExpression?: SyntaxNode
  leftHandSide?: SyntaxNode
  rightHandSide?: SyntaxNode
  subExpression?: SyntaxNode
  condition?: SyntaxNode
}>

type Output = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts?: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>
  sources?: Record<string, { ast: SyntaxNode }>
}

/** Returns the creation code, null where the sources do not compile, and the syntax trees by path. */
export function compileSources({ file, name }: { file: string; name: string }, sources: SourceFiles) {
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: sources(file) } },
    settings: {
      evmVersion: 'cancun',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { [file]: { [name]: ['evm.bytecode.object'] }, '*': { '': ['ast'] } },
    },
  }
  const read = (path: string) => {
    try {
      return { contents: sources(path) }
    } catch {
      return { error: `${path} could not be read.` }
    }
  }
  const {
    errors = [],
    contracts,
    sources: compiled = {},
  } = JSON.parse(solc.compile(JSON.stringify(input), { import: read })) as Output
  const failed = errors.some(({ severity }) => severity === 'error')
  const code = failed ? undefined : contracts?.[file]?.[name]?.evm.bytecode.object
  return {
    code: code === undefined ? null : (`0x${code}` as const),
    trees: Object.fromEntries(Object.entries(compiled).map(([path, { ast }]) => [path, ast])),
  }
}
