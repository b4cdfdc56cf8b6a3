/** Compiles one contract for a mutation run: without the optimizer, which takes more time than it saves there. */
import solc from 'solc'

/** Returns the text of a source file by its path. Throws where there is none. */
export type SourceFiles = (path: string) => string

export type SyntaxNode = Readonly<{
  nodeType: string
  src: string
  id?: number
  name?: string
  value?: string
  constant?: boolean
  referencedDeclaration?: number
  typeDescriptions?: { typeString: string }
  operator?: string
  prefix?: boolean
  kind?: string
  leftExpression?: SyntaxNode
  rightExpression?: SyntaxNode
  leftHandSide?: SyntaxNode
  rightHandSide?: SyntaxNode
  subExpression?: SyntaxNode
  condition?: SyntaxNode
  expression?: SyntaxNode
}>

type Output = {
  errors?: { severity: string; formattedMessage: string }[]
  contracts?: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>
  sources?: Record<string, { ast: SyntaxNode }>
}

type Contract = Readonly<{ file: string; name: string }>

/** Returns the creation code of a contract, or null where the sources do not compile. */
export function creationCode({ file, name }: Contract, sources: SourceFiles): `0x${string}` | null {
  const { errors = [], contracts } = compile(file, sources, { [file]: { [name]: ['evm.bytecode.object'] } })
  if (errors.some(({ severity }) => severity === 'error')) return null
  const code = contracts?.[file]?.[name]?.evm.bytecode.object
  return code === undefined ? null : `0x${code}`
}

/** Returns the syntax trees of a contract and of all that it imports, by path. */
export function syntaxTrees({ file }: Contract, sources: SourceFiles): Readonly<Record<string, SyntaxNode>> {
  const { sources: compiled = {} } = compile(file, sources, { '*': { '': ['ast'] } })
  return Object.fromEntries(Object.entries(compiled).map(([path, { ast }]) => [path, ast]))
}

function compile(file: string, sources: SourceFiles, outputSelection: object): Output {
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: sources(file) } },
    settings: {
      evmVersion: 'cancun',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection,
    },
  }
  const read = (path: string) => {
    try {
      return { contents: sources(path) }
    } catch {
      return { error: `${path} could not be read.` }
    }
  }
  return JSON.parse(solc.compile(JSON.stringify(input), { import: read })) as Output
}
