/** Makes mutants of Solidity sources: one small change each, found in the syntax tree of solc. */
import { compileSources, type SourceFiles, type SyntaxNode } from './compiler.ts'

/** `start` and `end` are byte offsets into the file; `text` replaces what lies between them. */
export type Mutant = Readonly<{ file: string; line: number; start: number; end: number; text: string; change: string }>

const operators: Readonly<Record<string, readonly string[]>> = {
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '&': ['|'],
  '|': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '++': ['--'],
  '--': ['++'],
  '|=': ['&='],
  '&=': ['|='],
  '+=': ['-='],
  '-=': ['+='],
}

/** Returns all mutants of operators, conditions, modifiers and number constants of these files, in the order of the sources. */
export function mutantsOf(contract: { file: string; name: string }, files: readonly string[], sources: SourceFiles) {
  const { trees } = compileSources(contract, sources)
  return files.flatMap((file) => {
    const tree = trees[file]
    if (tree === undefined) throw new Error(`${contract.file} does not import ${file}.`)
    return mutantsOfTree(file, Buffer.from(sources(file)), tree)
  })
}

/** Returns the text of a mutated file. */
export function mutate(source: string, { start, end, text }: Mutant): string {
  const bytes = Buffer.from(source)
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]).toString()
}

function mutantsOfTree(file: string, bytes: Buffer, tree: SyntaxNode): Mutant[] {
  const found: Mutant[] = []
  visit(tree)
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end)

  function visit(node: SyntaxNode): void {
    mutantsOfNode(node)
    for (const member of Object.values(node))
      for (const child of [member].flat())
        if (typeof child === 'object' && child !== null && 'nodeType' in child) visit(child as SyntaxNode)
  }

  function mutantsOfNode(node: SyntaxNode): void {
    if (node.nodeType === 'BinaryOperation' && node.leftExpression && node.rightExpression)
      swapOperator(node.operator, endOf(node.leftExpression), startOf(node.rightExpression))
    if (node.nodeType === 'Assignment' && node.leftHandSide && node.rightHandSide)
      swapOperator(node.operator, endOf(node.leftHandSide), startOf(node.rightHandSide))
    if (node.nodeType === 'UnaryOperation' && node.subExpression) {
      const [from, to] = node.prefix
        ? [startOf(node), startOf(node.subExpression)]
        : [endOf(node.subExpression), endOf(node)]
      if (node.operator === '!' || node.operator === '~') add(from, to, '')
      else swapOperator(node.operator, from, to)
    }
    if ((node.nodeType === 'IfStatement' || node.nodeType === 'Conditional') && node.condition)
      for (const value of ['true', 'false']) add(startOf(node.condition), endOf(node.condition), value)
    if (node.nodeType === 'ModifierInvocation' && node.kind !== 'baseConstructorSpecifier')
      add(startOf(node), endOf(node), '')
    if (node.nodeType === 'Literal' && node.kind === 'number') {
      const text = textOf(startOf(node), endOf(node))
      add(startOf(node), endOf(node), `(${text} + 1)`)
    }
  }

  function swapOperator(operator: string | undefined, from: number, to: number): void {
    const between = textOf(from, to)
    const at = between.indexOf(operator ?? '')
    for (const other of operators[operator ?? ''] ?? []) add(from + at, from + at + (operator ?? '').length, other)
  }

  function add(start: number, end: number, text: string): void {
    const line = textOf(0, start).split('\n').length
    found.push({ file, line, start, end, text, change: `${textOf(start, end)} → ${text || 'nothing'}` })
  }

  function textOf(start: number, end: number): string {
    return bytes.subarray(start, end).toString()
  }
}

function startOf({ src }: SyntaxNode): number {
  return Number(src.split(':')[0])
}

function endOf(node: SyntaxNode): number {
  return startOf(node) + Number(node.src.split(':')[1])
}
