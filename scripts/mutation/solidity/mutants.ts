/** Makes mutants of Solidity sources: one small change each, found in the syntax tree of solc. */
import type { Mutant } from '../mutant.ts'
import { type SourceFiles, type SyntaxNode, syntaxTrees } from './compiler.ts'

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

/** Returns all mutants of operators, conditions, modifiers, constants and statements of these files, in the order of the sources. */
export function mutantsOf(contract: { file: string; name: string }, files: readonly string[], sources: SourceFiles) {
  const trees = syntaxTrees(contract, sources)
  const constants = constantsOf(Object.values(trees))
  return files.flatMap((file) => {
    const tree = trees[file]
    if (tree === undefined) throw new Error(`${contract.file} does not import ${file}.`)
    return mutantsOfTree(file, Buffer.from(sources(file)), tree, constants)
  })
}

/** The constants of each type by the id of their declaration, in the order of the sources. */
type Constants = ReadonlyMap<number, SyntaxNode>

function constantsOf(trees: readonly SyntaxNode[]): Constants {
  const found = new Map<number, SyntaxNode>()
  for (const tree of trees)
    visitTree(tree, (node) => {
      if (node.nodeType === 'VariableDeclaration' && node.constant === true && node.id !== undefined)
        found.set(node.id, node)
    })
  return found
}

function visitTree(node: SyntaxNode, look: (node: SyntaxNode) => void): void {
  look(node)
  for (const member of Object.values(node))
    for (const child of [member].flat())
      if (typeof child === 'object' && child !== null && 'nodeType' in child) visitTree(child as SyntaxNode, look)
}

function mutantsOfTree(file: string, bytes: Buffer, tree: SyntaxNode, constants: Constants): Mutant[] {
  const found: Mutant[] = []
  const used = new Set<number>()
  visitTree(tree, ({ nodeType, referencedDeclaration: id = -1 }) => {
    if (nodeType === 'Identifier' && constants.has(id)) used.add(id)
  })
  visitTree(tree, mutantsOfNode)
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end)

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
    if (node.nodeType === 'Literal' && node.kind === 'bool')
      add(startOf(node), endOf(node), node.value === 'true' ? 'false' : 'true')
    if (node.nodeType === 'Literal' && node.kind === 'string')
      add(startOf(node), endOf(node), `${textOf(startOf(node), endOf(node)).slice(0, -1)}!"`)
    // A number without effect stands for a removed statement, because the statement's semicolon stays.
    if (node.nodeType === 'ExpressionStatement' || node.nodeType === 'EmitStatement')
      add(startOf(node), endOf(node), '0')
    if (node.nodeType === 'Return' && node.expression) {
      const nothing = emptyValue(node.expression.typeDescriptions?.typeString ?? '')
      if (nothing !== undefined) add(startOf(node.expression), endOf(node.expression), nothing)
    }
    if (node.nodeType === 'Identifier') swapConstant(node)
  }

  /** Puts the neighbours of the same type, among the constants that this file uses, in the place of a constant. */
  function swapConstant(node: SyntaxNode): void {
    const constant = constants.get(node.referencedDeclaration ?? -1)
    if (constant === undefined) return
    const type = constant.typeDescriptions?.typeString
    const ring = [...constants.values()].filter(
      (one) => used.has(one.id ?? -1) && one.typeDescriptions?.typeString === type,
    )
    const at = ring.indexOf(constant)
    const neighbours = new Set([ring[(at + 1) % ring.length], ring.at(at - 1)])
    for (const other of neighbours)
      if (other !== constant && other?.name !== undefined) add(startOf(node), endOf(node), other.name)
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

/** Returns the default value of an elementary type; booleans have mutants of their own. */
function emptyValue(type: string): string | undefined {
  if (/^u?int\d+$/.test(type)) return '0'
  return /^bytes\d+$|^address$/.test(type) ? `${type}(0)` : undefined
}

function startOf({ src }: SyntaxNode): number {
  return Number(src.split(':')[0])
}

function endOf(node: SyntaxNode): number {
  return startOf(node) + Number(node.src.split(':')[1])
}
