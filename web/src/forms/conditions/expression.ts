// A small part of JavaScript, read into a tree: what a row of the condition builder can hold. What is not in it is not read.

import { FIELD, find, parse } from '../../refs/parse'

/** `start` and `end` span the node in the source. */
interface Span {
  start: number
  end: number
}

export type Node = Span &
  (
    | { kind: 'reference' }
    | { kind: 'literal'; value: string | number | boolean | null }
    | { kind: 'name' }
    | { kind: 'list'; items: Node[] }
    | { kind: 'member'; of: Node; name: string }
    | { kind: 'call'; of: Node; args: Node[] }
    | { kind: 'index' | 'group' | 'sum' | 'minus'; of: Node }
    | { kind: 'or_else'; of: Node; otherwise: Node }
    | { kind: 'compare'; left: Node; op: string; right: Node }
    | { kind: 'not'; of: Node }
    | { kind: 'logic'; op: '&&' | '||'; of: Node[] }
  )

/** null: more than this reads. */
export function readExpression(source: string): Node | null {
  try {
    const reader = new Reader(tokens(source))
    const node = reader.logic()
    return reader.isAtEnd ? node : null
  } catch (error) {
    if (error instanceof Unread) return null
    throw error
  }
}

/** Is a reference part of it, outside of quoted text? */
export function hasReference(source: string): boolean {
  try {
    return tokens(source).some((token) => token.kind === 'reference')
  } catch (error) {
    if (error instanceof Unread) return false
    throw error
  }
}

/** The only thing that ends the reading before its time. */
class Unread extends Error {}

type TokenKind = 'reference' | 'string' | 'number' | 'name' | 'mark'

interface Token extends Span {
  kind: TokenKind
  text: string
}

const TOKEN =
  /(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[\p{L}_$][\p{L}\p{N}_$]*)|(?<mark>===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|[<>!()[\].,+*%/-])/uy
const WORDS = new Set([
  'typeof',
  'in',
  'instanceof',
  'new',
  'return',
  'function',
  'await',
  'async',
  'void',
  'delete',
  'let',
  'const',
  'var',
  'if',
  'else',
  'for',
  'while',
  'class',
  'this',
  'throw',
  'yield',
])
const COMPARISONS = new Set(['==', '===', '!=', '!==', '<', '<=', '>', '>='])

function tokens(source: string): Token[] {
  const references = new Map(
    find(source)
      .filter((found) => found.env || isPlain(found.text))
      .map((found) => [found.start, found.end]),
  )
  const out: Token[] = []
  let at = 0
  while (at < source.length) {
    const space = /\s*/y
    space.lastIndex = at
    at += space.exec(source)![0].length
    if (at >= source.length) break
    const end = references.get(at)
    if (end !== undefined) {
      out.push({ kind: 'reference', text: source.slice(at, end), start: at, end })
      at = end
      continue
    }
    TOKEN.lastIndex = at
    const match = TOKEN.exec(source)
    if (!match) throw new Unread()
    const kind = (Object.keys(match.groups!) as TokenKind[]).find((each) => match.groups![each] !== undefined)!
    if ((kind === 'name' && WORDS.has(match[0])) || /^\/[/*]/.test(source.slice(at))) throw new Unread()
    out.push({ kind, text: match[0], start: at, end: at + match[0].length })
    at += match[0].length
  }
  return out
}

/** Not `b && c` of `a <b && c> d`. */
function isPlain(text: string): boolean {
  return parse(text)?.segments.every((part) => typeof part === 'number' || FIELD.test(part)) ?? false
}

class Reader {
  private at = 0

  constructor(private readonly all: readonly Token[]) {}

  get isAtEnd(): boolean {
    return this.at === this.all.length
  }

  /** One operator for all of it: `a && b || c` is not read. */
  logic(): Node {
    const first = this.term()
    const op = this.next?.text
    if (op !== '&&' && op !== '||') return first
    const of = [first]
    while (this.takes(op)) of.push(this.term())
    return { kind: 'logic', op, of, start: first.start, end: of.at(-1)!.end }
  }

  private term(): Node {
    const start = this.next?.start ?? 0
    if (this.takes('!')) {
      const of = this.term()
      // `!a == b` is `(!a) == b`.
      if (of.kind === 'compare') throw new Unread()
      return { kind: 'not', of, start, end: of.end }
    }
    const left = this.sum()
    const op = this.next?.kind === 'mark' ? this.next.text : ''
    if (!COMPARISONS.has(op)) return left
    this.at++
    const right = this.sum()
    if (isTest(left) || isTest(right)) throw new Unread()
    return { kind: 'compare', left, op, right, start, end: right.end }
  }

  private sum(): Node {
    const first = this.postfix()
    let last = first
    let isSum = false
    while (this.next?.kind === 'mark' && ['+', '-', '*', '%', '/'].includes(this.next.text)) {
      this.at++
      last = this.postfix()
      isSum = true
      if (isTest(last)) throw new Unread()
    }
    if (isSum && isTest(first)) throw new Unread()
    return isSum ? { kind: 'sum', of: first, start: first.start, end: last.end } : first
  }

  private postfix(): Node {
    let node = this.primary()
    for (;;) {
      if (this.takes('.') || this.takes('?.')) {
        const name = this.take('name')
        node = { kind: 'member', of: node, name: name.text, start: node.start, end: name.end }
      } else if (this.takes('[')) {
        this.value()
        node = { kind: 'index', of: node, start: node.start, end: this.closes(']') }
      } else if (this.takes('(')) {
        const args = this.list(')')
        node = { kind: 'call', of: node, args: args.items, start: node.start, end: args.end }
      } else return node
    }
  }

  private primary(): Node {
    const token = this.next
    if (!token) throw new Unread()
    const { start, end } = token
    this.at++
    switch (token.kind) {
      case 'reference':
        return { kind: 'reference', start, end }
      case 'string':
        return { kind: 'literal', value: unquoted(token.text), start, end }
      case 'number':
        return { kind: 'literal', value: Number(token.text), start, end }
      case 'name': {
        const word = ({ true: true, false: false, null: null } as Record<string, boolean | null>)[token.text]
        return word === undefined ? { kind: 'name', start, end } : { kind: 'literal', value: word, start, end }
      }
    }
    if (token.text === '-') {
      const of = this.postfix()
      return of.kind === 'literal' && typeof of.value === 'number'
        ? { kind: 'literal', value: -of.value, start, end: of.end }
        : { kind: 'minus', of, start, end: of.end }
    }
    if (token.text === '[') {
      const list = this.list(']')
      return { kind: 'list', items: list.items, start, end: list.end }
    }
    if (token.text !== '(') throw new Unread()
    const of = this.orElse()
    return { kind: 'group', of, start, end: this.closes(')') }
  }

  private orElse(): Node {
    const of = this.logic()
    if (!this.takes('??')) return of
    const otherwise = this.value()
    return { kind: 'or_else', of, otherwise, start: of.start, end: otherwise.end }
  }

  /** What can be an argument or an item: no test. */
  private value(): Node {
    const node = this.sum()
    if (isTest(node)) throw new Unread()
    return node
  }

  private list(close: string): { items: Node[]; end: number } {
    const items: Node[] = []
    if (this.next?.text !== close)
      do items.push(this.value())
      while (this.takes(','))
    return { items, end: this.closes(close) }
  }

  private get next(): Token | undefined {
    return this.all[this.at]
  }

  private takes(mark: string): boolean {
    if (this.next?.kind !== 'mark' || this.next.text !== mark) return false
    this.at++
    return true
  }

  private take(kind: TokenKind): Token {
    const token = this.next
    if (token?.kind !== kind) throw new Unread()
    this.at++
    return token
  }

  private closes(mark: string): number {
    const token = this.next
    if (!this.takes(mark)) throw new Unread()
    return token!.end
  }
}

/** Something with a test in brackets is a whole condition, not a value. */
function isTest(node: Node): boolean {
  switch (node.kind) {
    case 'compare':
    case 'logic':
    case 'not':
      return true
    case 'member':
    case 'index':
    case 'call':
    case 'group':
    case 'or_else':
    case 'sum':
    case 'minus':
      return isTest(node.of)
    default:
      return false
  }
}

function unquoted(text: string): string {
  const inner = text.slice(1, -1)
  try {
    return JSON.parse(
      text.startsWith('"') ? text : `"${inner.replaceAll("\\'", "'").replace(/(?<!\\)"/g, '\\"')}"`,
    ) as string
  } catch {
    throw new Unread()
  }
}
