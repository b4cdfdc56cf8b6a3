/** Makes mutants of TypeScript sources: one small change each, found in the syntax tree of oxc. */
import { parseSync, type Node } from 'oxc-parser'
import type { Mutant } from '../mutant.ts'

const operators: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<='],
  '<=': ['<'],
  '>': ['>='],
  '>=': ['>'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+=': ['-='],
  '-=': ['+='],
  '>>=': ['<<='],
  '|=': ['&='],
  '++': ['--'],
  '--': ['++'],
}

/** Methods that stand for one another. */
const methods: Readonly<Record<string, string>> = {
  every: 'some',
  some: 'every',
  min: 'max',
  max: 'min',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  padStart: 'padEnd',
  padEnd: 'padStart',
  ceil: 'floor',
  floor: 'ceil',
  has: 'delete',
}

/** Methods that a mutant leaves out of a chain. */
const dropped = new Set(['filter', 'toLowerCase', 'toUpperCase', 'trim', 'slice', 'subarray', 'normalize'])

/**
 * Returns all mutants of one file in the order of the text. Not changed are types, prose (a text with a space) and defaults of indexed
 * elements, which are there for the type checker.
 */
export function mutantsOf(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  const found: Mutant[] = []
  /** The elements of array patterns, `[first = x]`. */
  const elements = new Set<Node>()
  const conditions = new Set<Node>()
  const makers: { readonly [Type in Node['type']]?: (node: Extract<Node, { type: Type }>) => void } = {
    // A condition that is always true, or never, is harder to notice than its contrary.
    BinaryExpression: (node) => {
      if (!conditions.has(node) || !/^[!=]==$/.test(node.operator))
        swapOperator(node.operator, node.left.end, node.right.start)
    },
    LogicalExpression: (node) => swapOperator(node.operator, node.left.end, node.right.start),
    AssignmentExpression: (node) => swapOperator(node.operator, node.left.end, node.right.start),
    UpdateExpression: ({ prefix, operator, start, end, argument }) =>
      prefix ? swapOperator(operator, start, argument.start) : swapOperator(operator, argument.end, end),
    UnaryExpression: (node) => {
      if (['!', '-', '~'].includes(node.operator) && !conditions.has(node)) add(node.start, node.argument.start, '')
    },
    IfStatement: ({ test }) => alwaysOrNever(test),
    ConditionalExpression: ({ test }) => alwaysOrNever(test),
    WhileStatement: ({ test }) => add(test.start, test.end, 'false'),
    ForStatement: ({ test }) => {
      if (test !== null) add(test.start, test.end, 'false')
    },
    ExpressionStatement: ({ start, end }) => add(start, end, ';'),
    ThrowStatement: ({ start, end }) => add(start, end, ';'),
    ReturnStatement: ({ argument }) => {
      if ((argument?.type === 'Identifier' && argument.name !== 'undefined') || argument?.type === 'CallExpression')
        add(argument.start, argument.end, 'undefined')
    },
    CallExpression: mutantsOfCall,
    TemplateLiteral: ({ quasis, start, end }) => {
      if (!quasis.some(({ value }) => value.raw.includes(' '))) add(start, end, '``')
    },
    Literal: mutantsOfLiteral,
  }
  visit(program)
  return found.toSorted((a, b) => a.start - b.start || a.end - b.end)

  function visit(node: Node): void {
    if (isIgnored(node)) return
    if (node.type === 'ArrayPattern') for (const element of node.elements) if (element !== null) elements.add(element)
    const make = makers[node.type] as ((node: Node) => void) | undefined
    make?.(node)
    const left = unchangedPart(node)
    for (const [name, member] of Object.entries(node))
      if (name !== left) for (const child of [member as unknown].flat()) if (isNode(child)) visit(child)
  }

  /**
   * Returns the member of a node that is not mutated. These are names of properties and modules, and defaults of
   * indexed elements.
   */
  function unchangedPart(node: Node): string | undefined {
    if ('computed' in node && !node.computed && 'key' in node) return 'key'
    if (node.type === 'ExportNamedDeclaration') return 'source'
    if (node.type === 'AssignmentPattern' && elements.has(node)) return 'right'
    if (node.type !== 'LogicalExpression' || node.operator !== '??') return undefined
    const { left } = node
    const member = left.type === 'ChainExpression' ? left.expression : left
    return member.type === 'MemberExpression' && member.computed ? 'right' : undefined
  }

  function alwaysOrNever(test: Node): void {
    conditions.add(test)
    for (const value of ['true', 'false']) add(test.start, test.end, value)
  }

  function mutantsOfCall({ callee, end }: Extract<Node, { type: 'CallExpression' }>): void {
    if (callee.type !== 'MemberExpression' || callee.computed || callee.property.type !== 'Identifier') return
    const { object, property } = callee
    const other = Object.hasOwn(methods, property.name) ? methods[property.name] : undefined
    if (other !== undefined) add(property.start, property.end, other)
    if (dropped.has(property.name)) add(object.end, end, '')
  }

  function mutantsOfLiteral(node: Extract<Node, { type: 'Literal' }>): void {
    const { start, end } = node
    const text = source.slice(start, end)
    if ('regex' in node && node.regex) {
      for (const changed of patternsNear(node.regex.pattern)) add(start, end, `/${changed}/${node.regex.flags}`)
      for (const flag of node.regex.flags)
        if ('im'.includes(flag)) add(start, end, `/${node.regex.pattern}/${node.regex.flags.replace(flag, '')}`)
    } else if ('bigint' in node && node.bigint) add(start, end, `(${text} + 1n)`)
    else if (typeof node.value === 'number') add(start, end, `(${text} + 1)`)
    else if (typeof node.value === 'boolean') add(start, end, String(!node.value))
    else if (typeof node.value === 'string' && !node.value.includes(' '))
      add(start, end, node.value === '' ? `'!'` : `''`)
  }

  function swapOperator(operator: string, from: number, to: number): void {
    const at = from + source.slice(from, to).indexOf(operator)
    for (const other of operators[operator] ?? []) add(at, at + operator.length, other)
  }

  function add(start: number, end: number, text: string): void {
    const before = source.slice(0, start)
    const old = source.slice(start, end)
    const byte = Buffer.byteLength(before)
    found.push({
      file,
      line: before.split('\n').length,
      start: byte,
      end: byte + Buffer.byteLength(old),
      text,
      change: `${old} → ${text || 'nothing'}`,
    })
  }
}

/** Returns the patterns without an anchor, with one more of a counted part, and with a class inverted. */
function patternsNear(pattern: string): string[] {
  const near: string[] = []
  for (const { index, 0: part } of pattern.matchAll(/\\.|\[\^?|\{\d+(?:,\d*)?\}|[\^$+*]/g)) {
    const put = (text: string) => near.push(pattern.slice(0, index) + text + pattern.slice(index + part.length))
    if (part === '^' || part === '$') put('')
    if (part === '+') put('*')
    if (part === '*') put('+')
    if (part === '[') put('[^')
    if (part === '[^') put('[')
    if (part.startsWith('{')) put(part.replace(/\d+(?=\D*$)/, (count) => String(Number(count) + 1)))
  }
  return near
}

function isIgnored({ type }: Node): boolean {
  return type.startsWith('TS') && !['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'].includes(type)
    ? true
    : type === 'ImportDeclaration' || type === 'ExportAllDeclaration'
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}
