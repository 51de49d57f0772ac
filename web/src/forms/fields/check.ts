// What is wrong with the references of a text, while it is typed: names that no block has, blocks that do not run before, fields that
// are not there; each with what was probably meant. The server's findings are more; these are quick.

import type { Json } from '../../api/schemas'
import type { Document, JsonSchema } from '../../api/types'
import { suggest } from '../../refs/complete'
import { find, normalize, parse, withHead, type Found, type Segment } from '../../refs/parse'
import {
  aroundOf,
  LOOP_FIELDS,
  outputSchema,
  PARALLEL_FIELDS,
  reachable,
  refName,
  resolve,
  type Reader,
} from '../../refs/scope'
import { kindOf, nameOf, NO_SPECS, type Specs } from '../../document/document'

/** `fix` replaces the reference, brackets included. */
export interface Mark {
  start: number
  end: number
  ok: boolean
  env: boolean
  message?: string
  fix?: string
}

export interface CheckContext {
  doc: Document
  reader: Reader
  specs?: Specs
  env?: readonly string[] | null
  /** Last output of a block: fields that no schema declares are known from here. */
  lastOutput?: (block: string) => Json | undefined
}

/** A mark for each reference of `text`, in order. Text that is probably no reference has none. */
export function checkRefs(text: string, context: CheckContext): Mark[] {
  return find(text).flatMap((found) => {
    const mark = checkOne(found, context)
    return mark ? [{ start: found.start, end: found.end, env: found.env, ...mark }] : []
  })
}

type Verdict = Pick<Mark, 'ok' | 'message' | 'fix'>
const OK: Verdict = { ok: true }

function checkOne(found: Found, context: CheckContext): Verdict | null {
  const { doc, reader, specs = NO_SPECS, env } = context
  if (found.env) {
    if (!env || env.includes(found.text)) return OK
    const near = suggest(found.text, env)
    return bad(`\${${found.text}} is not set on this server.`, near && `\${${near}}`)
  }
  const target = resolve(doc, found, reader, specs)
  if (!target) return unknown(found, context)
  switch (target.kind) {
    case 'env':
      return OK
    case 'variable': {
      const names = Object.keys(doc.variables ?? {})
      if (names.some((name) => normalize(name) === normalize(target.name))) return OK
      const near = suggest(target.name, names)
      return bad(`There is no variable "${target.name}".`, near && `<${withHead(found.text, 2, `workflow.${near}`)}>`)
    }
    case 'input':
      return field(
        found,
        target.path,
        { type: 'object', properties: doc.input?.properties ?? {} },
        undefined,
        1,
        'The input',
        !doc.input?.properties,
      )
    case 'scope': {
      const fields = kindOf(doc, target.container, specs) === 'parallel' ? PARALLEL_FIELDS : LOOP_FIELDS
      const name = target.path[0]
      if (typeof name !== 'string' || (fields as readonly string[]).includes(name) || name === 'currentItem') return OK
      if (name === 'outcome') return OK // in a cleanup: how the container has ended. The compiler knows where
      return bad(
        `${nameOf(doc, target.container)} has no ${name} here.`,
        near(found, target.parsed.segments.length - target.path.length, name, fields),
      )
    }
    case 'block': {
      const way = reachable(doc, reader, specs).find((each) => each.block === target.block)
      const name = nameOf(doc, target.block)
      if (!way)
        return bad(
          target.block === reader.block
            ? `${name} cannot read its own output.`
            : `${name} does not run before this block.`,
          null,
        )
      const open = doc.blocks[target.block]?.type === 'start'
      const path = target.path[0] === 'output' ? target.path.slice(1) : target.path
      if (path[0] === 'error') return OK
      const used = target.parsed.segments.length - path.length
      return field(
        found,
        path,
        outputSchema(doc, target.block, specs),
        context.lastOutput?.(target.block),
        used,
        name,
        open,
      )
    }
  }
}

/** Follow `path` through the schema; a name that neither it nor the last value has is wrong. `open`: only when it looks misspelt. */
function field(
  found: Found,
  path: readonly Segment[],
  schema: JsonSchema | null | undefined,
  value: Json | undefined,
  used: number,
  owner: string,
  open: boolean,
): Verdict {
  for (const part of path) {
    if (!schema) return OK
    if (typeof part === 'number') {
      schema = schema.items
      value = Array.isArray(value) ? value[part] : undefined
    } else {
      const seen = value && typeof value === 'object' && !Array.isArray(value) ? value : null
      const names = [...Object.keys(schema.properties ?? {}), ...Object.keys(seen ?? {})]
      const known = names.find((name) => name === part)
      if (known === undefined) {
        const meant = near(found, used, part, names)
        const closed =
          schema.properties && Object.keys(schema.properties).length > 0 && !schema.additionalProperties && !open
        return closed || meant ? bad(`${owner} has no field "${part}".`, meant) : OK
      }
      schema = schema.properties?.[part]
      value = seen?.[part]
    }
    used++
  }
  return OK
}

function unknown(found: Found, { doc, reader, specs = NO_SPECS }: CheckContext): Verdict | null {
  const parsed = parse(found.text)
  const first = parsed?.segments[0]
  if (!parsed || typeof first !== 'string') return null
  const word = normalize(first)
  if (word === 'loop' || word === 'parallel') {
    const other = aroundOf(doc, reader).length > 0
    return bad(
      `This block is not inside a ${word}.`,
      other ? `<${withHead(found.text, 1, word === 'loop' ? 'parallel' : 'loop')}>` : null,
    )
  }
  const names = new Map<string, string>()
  for (const { block } of reachable(doc, reader, specs)) names.set(refName(doc, block), refName(doc, block))
  for (const other of ['input', 'workflow', 'loop', 'parallel']) names.set(other, other)
  const meant = suggest(first, names.keys())
  if (meant) return bad(`No block has the name "${first}".`, `<${withHead(found.text, 1, meant)}>`)
  const looksMeant = parsed.segments.length > 1 && !/^\s|\s$/.test(found.text) && !/\s\./.test(found.text)
  return looksMeant ? bad(`No block has the name "${first}".`, null) : null
}

function near(found: Found, used: number, name: string, names: Iterable<string>): string | null {
  const meant = suggest(name, names)
  if (!meant) return null
  const rest = withHead(found.text, used + 1, '')
  const head = found.text.slice(0, found.text.length - withHead(found.text, used, '').length)
  return `<${head}.${meant}${rest}>`
}

function bad(message: string, fix: string | null | undefined): Verdict {
  return { ok: false, message, ...(fix ? { fix } : {}) }
}
