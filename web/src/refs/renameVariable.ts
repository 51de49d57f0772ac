// A workflow variable gets another name: everything that reads it or writes it follows. References by the parser
// (`<workflow.total.items[0]>`), paths of variables blocks and of `assign` by their grammar; prose that happens to hold the name
// stays as it is.

import { isObject } from '../net/json'
import type { Json } from '../api/schemas'
import type { Block, Document } from '../api/types'
import { NO_SPECS, type Specs } from '../document/document'
import { FIELD, normalize, withHead } from './parse'
import { resolve, rewriteBlock } from './scope'

/** A name of a variable that references and paths can be written with. */
export const VARIABLE_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_-]*$/u

/** The same document when there is no variable `from`, or there is a `to` already. */
export function renameVariable(doc: Document, from: string, to: string, specs: Specs = NO_SPECS): Document {
  const variables = doc.variables ?? {}
  if (from === to || !Object.hasOwn(variables, from) || Object.hasOwn(variables, to)) return doc
  const renamed = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name === from ? to : name, value]),
  )
  const blocks = Object.fromEntries(
    Object.entries(doc.blocks).map(([id, block]) => [id, inBlock(doc, id, block, from, to, specs)]),
  )
  return { ...doc, variables: renamed, blocks }
}

function inBlock(doc: Document, id: string, block: Block, from: string, to: string, specs: Specs): Block {
  const means = (name: string): boolean =>
    name === from || (normalize(name) === normalize(from) && !Object.hasOwn(doc.variables ?? {}, name))
  const read = rewriteBlock(block, specs, (found) => {
    const target = resolve(doc, found, { block: id, inside: true }, specs)
    if (target?.kind !== 'variable' || !means(target.name)) return null
    const word = String(target.parsed.segments[0])
    return withHead(
      found.text,
      2,
      FIELD.test(to) && !to.includes('.') ? `${word}.${to}` : `${word}[${JSON.stringify(to)}]`,
    )
  })
  const assign = typeof read.assign === 'string' ? renamePath(read.assign, from, to) : read.assign
  const params = block.type === 'variables' ? inAssignments(read.params?.assign, from, to) : undefined
  if (assign === read.assign && (params === undefined || params === read.params?.assign)) return read
  return {
    ...read,
    ...(assign === read.assign || assign === undefined ? {} : { assign }),
    ...(params === undefined ? {} : { params: { ...read.params, assign: params } }),
  }
}

/** The `assign` of a variables block: a list of {name, ...}, or {name: value}. */
function inAssignments(assign: Json | undefined, from: string, to: string): Json | undefined {
  if (Array.isArray(assign)) {
    return assign.map((item) =>
      isObject(item) && typeof item.name === 'string' ? { ...item, name: renamePath(item.name, from, to) } : item,
    )
  }
  return isObject(assign)
    ? Object.fromEntries(Object.entries(assign).map(([name, value]) => [renamePath(name, from, to), value]))
    : assign
}

/** `total`, `$.total.items[0]`, `$["odd name"]`: the variable in front. */
function renamePath(path: string, from: string, to: string): string {
  if (path === from) return to
  const match = /^\$(?:\.([\p{L}\p{N}_][\p{L}\p{N}_-]*)|\[("(?:[^"\\]|\\.)*")\])/u.exec(path)
  if (!match) return path
  let name: unknown = match[1]
  try {
    name ??= JSON.parse(match[2]!)
  } catch {
    return path
  }
  if (name !== from) return path
  return `$${VARIABLE_NAME.test(to) ? `.${to}` : `[${JSON.stringify(to)}]`}${path.slice(match[0].length)}`
}
