// A condition as rows of value, operator, value: read from the text of an expression, and written as one. The document holds
// the text alone; an expression that is more than rows is not read.

import { find } from '../../refs/parse'
import { hasReference, readExpression, type Node } from './expression'

export type Operator =
  | 'equals'
  | 'differs'
  | 'greater'
  | 'at_least'
  | 'less'
  | 'at_most'
  | 'contains'
  | 'lacks'
  | 'starts'
  | 'ends'
  | 'empty'
  | 'filled'
  | 'true'
  | 'false'

/** What is shown of a value: a reference, a number, text without quotes. `form`: which of the ways to write the operator. */
export interface Row {
  left: string
  operator: Operator
  right: string
  form: number
}

/** `otherwise`: what is written while there is no row. */
export interface Condition {
  match: 'all' | 'any'
  rows: Row[]
  otherwise: string
}

export const OPERATORS: Readonly<Record<Operator, string>> = {
  equals: 'equals',
  differs: 'does not equal',
  greater: 'is greater than',
  at_least: 'is at least',
  less: 'is less than',
  at_most: 'is at most',
  contains: 'contains',
  lacks: 'does not contain',
  starts: 'starts with',
  ends: 'ends with',
  empty: 'is empty',
  filled: 'is not empty',
  true: 'is true',
  false: 'is false',
}

/** They have no second value. */
const ALONE: ReadonlySet<Operator> = new Set(['empty', 'filled', 'true', 'false'])
export const hasRight = (operator: Operator): boolean => !ALONE.has(operator)

export const EMPTY_ROW: Row = { left: '', operator: 'equals', right: '', form: 0 }

type Write = (left: string, right: string) => string

/** The first form is what a new row gets. The others say the same in another way, and stay as they were written. */
const FORMS: Readonly<Record<Operator, readonly Write[]>> = {
  equals: [(l, r) => `${l} == ${r}`, (l, r) => `${l} === ${r}`],
  differs: [(l, r) => `${l} != ${r}`, (l, r) => `${l} !== ${r}`],
  greater: [(l, r) => `${l} > ${r}`],
  at_least: [(l, r) => `${l} >= ${r}`],
  less: [(l, r) => `${l} < ${r}`],
  at_most: [(l, r) => `${l} <= ${r}`],
  contains: [(l, r) => `(${l} ?? "").includes(${r})`, (l, r) => `${inner(l)}.includes(${r})`],
  lacks: [(l, r) => `!(${l} ?? "").includes(${r})`, (l, r) => `!${inner(l)}.includes(${r})`],
  starts: [(l, r) => `(${l} ?? "").startsWith(${r})`, (l, r) => `${inner(l)}.startsWith(${r})`],
  ends: [(l, r) => `(${l} ?? "").endsWith(${r})`, (l, r) => `${inner(l)}.endsWith(${r})`],
  // A missing value, text and lists: each has no length, or one of 0.
  empty: [(l) => `(${l} ?? "").length === 0`, (l) => `${inner(l)}.length === 0`, (l) => `${inner(l)}.length == 0`],
  filled: [(l) => `(${l} ?? "").length !== 0`, (l) => `${inner(l)}.length !== 0`, (l) => `${inner(l)}.length != 0`],
  true: [(l) => l, (l) => `${l} === true`, (l) => `${l} == true`],
  false: [(l) => `!${inner(l)}`, (l) => `${l} === false`, (l) => `${l} == false`],
}

const COMPARED: Readonly<Record<string, [Operator, number]>> = {
  '==': ['equals', 0],
  '===': ['equals', 1],
  '!=': ['differs', 0],
  '!==': ['differs', 1],
  '>': ['greater', 0],
  '>=': ['at_least', 0],
  '<': ['less', 0],
  '<=': ['at_most', 0],
}
const CALLED: Readonly<Record<string, Operator>> = { includes: 'contains', startsWith: 'starts', endsWith: 'ends' }

/** null: it is more than rows. Text that says nothing yet (``, `true`, `false`) is no row. */
export function readCondition(text: string): Condition | null {
  const source = text.trim()
  if (source === '' || source === 'true' || source === 'false') return { match: 'all', rows: [], otherwise: source }
  const node = readExpression(source)
  if (!node) return null
  const whole = bare(node)
  const terms = whole.kind === 'logic' ? whole.of : [whole]
  const rows = terms.map((term) => rowOf(term, source))
  if (rows.some((row) => row === null)) return null
  return { match: whole.kind === 'logic' && whole.op === '||' ? 'any' : 'all', rows: rows as Row[], otherwise: '' }
}

/** Rows without a first value are not finished, and not written. */
export function writeCondition({ match, rows, otherwise }: Condition): string {
  const done = rows.filter((row) => row.left.trim() !== '')
  if (!done.length) return otherwise
  return done
    .map((row) => FORMS[row.operator][row.form]!(sourceOf(row.left), sourceOf(row.right)))
    .join(match === 'all' ? ' && ' : ' || ')
}

/** What was typed as JavaScript: references, numbers, true, false, null and quoted text stand for themselves, the rest is text. */
export function sourceOf(typed: string): string {
  const text = typed.trim()
  const node = readExpression(text)
  const isCode = node !== null && (isConstant(node) || (isValue(node) && hasReference(text)))
  return isCode ? text : JSON.stringify(typed)
}

/** Does what was typed read anything? */
export const readsSomething = (typed: string): boolean => find(typed).length > 0

function rowOf(term: Node, source: string): Row | null {
  const node = bare(term)
  const shownOf = (value: Node): string | null => shown(value, source)
  const row = (left: Node, operator: Operator, right: Node | null, form: number): Row | null => {
    const [l, r] = [shownOf(left), right ? shownOf(right) : '']
    return l === null || l.trim() === '' || r === null ? null : { left: l, operator, right: r, form }
  }
  if (node.kind === 'logic') return null
  if (node.kind === 'not') {
    const of = bare(node.of)
    const call = calledOf(of)
    if (call) return call.operator === 'contains' ? row(call.left, 'lacks', call.right, call.form) : null
    return of.kind === 'not' || of.kind === 'compare' || of.kind === 'logic' ? null : row(of, 'false', null, 0)
  }
  if (node.kind === 'compare') {
    const { left, op, right } = node
    if (right.kind === 'literal' && left.kind === 'member' && left.name === 'length' && right.value === 0) {
      const [operator, length] = op.startsWith('!') ? (['filled', op.length] as const) : (['empty', op.length] as const)
      if (/^[!=]==?$/.test(op)) {
        const { of, guarded } = unguarded(left.of)
        if (!guarded || length === 3) return row(of, operator, null, guarded ? 0 : length === 3 ? 1 : 2)
      }
    }
    if (right.kind === 'literal' && typeof right.value === 'boolean' && (op === '===' || op === '=='))
      return row(left, right.value ? 'true' : 'false', null, op === '===' ? 1 : 2)
    const [operator, form] = COMPARED[op]!
    return row(left, operator, right, form)
  }
  const call = calledOf(node)
  return call ? row(call.left, call.operator, call.right, call.form) : row(node, 'true', null, 0)
}

/** `left.includes(right)` and its like. */
function calledOf(node: Node): { left: Node; operator: Operator; right: Node; form: number } | null {
  if (node.kind !== 'call' || node.of.kind !== 'member' || node.args.length !== 1) return null
  const operator = CALLED[node.of.name]
  if (!operator) return null
  const { of, guarded } = unguarded(node.of.of)
  return { left: of, operator, right: node.args[0]!, form: guarded ? 0 : 1 }
}

/** `(left ?? "")` is left. */
function unguarded(node: Node): { of: Node; guarded: boolean } {
  const of = bare(node)
  return of.kind === 'or_else' && of.otherwise.kind === 'literal' && of.otherwise.value === ''
    ? { of: bare(of.of), guarded: true }
    : { of, guarded: false }
}

/** Without the brackets around all of it. */
function bare(node: Node): Node {
  return node.kind === 'group' ? bare(node.of) : node
}

/** A value as it is shown; null when what is shown would be written as something else. */
function shown(value: Node, source: string): string | null {
  const node = bare(value)
  const text = source.slice(node.start, node.end)
  if (node.kind === 'literal' && typeof node.value === 'string' && sourceOf(node.value) === JSON.stringify(node.value))
    return node.value
  return sourceOf(text) === text ? text : null
}

function isConstant(node: Node): boolean {
  return node.kind === 'literal' || (node.kind === 'list' && node.items.every(isConstant))
}

/** A value that an operator can stand beside: no test, and nothing that needs brackets of its own. */
function isValue(node: Node): boolean {
  return !['compare', 'logic', 'not', 'or_else'].includes(node.kind)
}

/** In front of a dot or after `!`. */
function inner(source: string): string {
  const node = readExpression(source)
  return node &&
    (node.kind === 'sum' || node.kind === 'minus' || (node.kind === 'literal' && typeof node.value === 'number'))
    ? `(${source})`
    : source
}
