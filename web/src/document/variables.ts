// Workflow variables: applying the patches of `variables.patched`. A patch is [op, path, value]; the path is `$.name`, with
// `.field`, `[n]` and `["k"]` behind it. The same rules as executor/kernel/values/variables.py, on data it has accepted.

import type { Json, JsonObject } from '../api/schemas'

type Part = string | number

export function applyOps(variables: JsonObject, ops: readonly (readonly [string, string, Json])[]): JsonObject {
  let root: Json = variables
  for (const [op, path, value] of ops) {
    const parts = parseVariablePath(path)
    if (parts?.length) root = change(root, parts, op, value)
  }
  return root as JsonObject
}

/** `$.hit.body[0]` -> ["hit", "body", 0]; null when it is no path. */
export function parseVariablePath(text: string): Part[] | null {
  if (!text.startsWith('$')) return null
  const part = /\.([\p{L}\p{N}_][\p{L}\p{N}_-]*)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]/uy
  const parts: Part[] = []
  for (part.lastIndex = 1; part.lastIndex < text.length; ) {
    const match = part.exec(text)
    if (!match) return null
    parts.push(match[2] !== undefined ? Number(match[2]) : (match[1] ?? (JSON.parse(match[3]!) as string)))
  }
  return parts
}

function change(value: Json | undefined, parts: readonly Part[], op: string, operand: Json): Json {
  const [head, ...rest] = parts as [Part, ...Part[]]
  const inner = read(value, head)
  if (Array.isArray(value)) {
    const list = [...value]
    const index = Number(head)
    if (op === 'del' && !rest.length) list.splice(index, 1)
    else list[index] = rest.length ? change(inner, rest, op, operand) : operate(inner, op, operand)
    return list
  }
  if (value === undefined && typeof head === 'number')
    return head === 0 ? [rest.length ? change(undefined, rest, op, operand) : operate(undefined, op, operand)] : []
  const object = { ...((value ?? {}) as JsonObject) }
  if (op === 'del' && !rest.length) delete object[head]
  else if (op !== 'del' || inner !== undefined)
    object[head] = rest.length ? change(inner, rest, op, operand) : operate(inner, op, operand)
  return object
}

function operate(old: Json | undefined, op: string, operand: Json): Json {
  switch (op) {
    case 'merge':
      return { ...((old ?? {}) as JsonObject), ...(operand as JsonObject) }
    case 'append':
      return [...(Array.isArray(old) ? old : []), operand]
    case 'increment':
      return (typeof old === 'number' ? old : 0) + (typeof operand === 'number' ? operand : 1)
    default:
      return operand
  }
}

function read(value: Json | undefined, part: Part): Json | undefined {
  if (Array.isArray(value)) return value[Number(part)]
  return value && typeof value === 'object' ? value[part] : undefined
}
