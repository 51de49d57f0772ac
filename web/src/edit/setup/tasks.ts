// The tasks that are left before the draft runs. The server finds them with each save; those that were seen and are not left are done.

import { createStore } from 'zustand/vanilla'
import type { Json, JsonObject, Task } from '../../api/schemas'
import type { Document, JsonSchema } from '../../api/types'
import type { Specs } from '../../document/document'
import { docStore } from '../../state/doc'

interface SetupState {
  draft: string | null
  seen: readonly Task[]
}

/** Publishing is no task of the list: it is offered once the others are done. */
export const seenStore = createStore<SetupState>(() => ({ draft: null, seen: [] }))

docStore.subscribe(({ id, tasks }) => {
  const { draft, seen } = seenStore.getState()
  const before = draft === id ? seen : []
  const known = new Set(before.map((task) => task.id))
  const added = tasks.filter((task) => !known.has(task.id))
  if (draft !== id || added.length) seenStore.setState({ draft: id, seen: [...before, ...added] })
})

export interface Step {
  task: Task
  done: boolean
}

/** What is done, then what is left, in the order of the server. */
export function stepsOf(seen: readonly Task[], left: readonly Task[]): Step[] {
  const open = new Set(left.map((task) => task.id))
  return [
    ...seen.filter((task) => task.kind !== 'triggers' && !open.has(task.id)).map((task) => ({ task, done: true })),
    ...left.filter((task) => task.kind !== 'triggers').map((task) => ({ task, done: false })),
  ]
}

/** A param that a pointer leads to, of a block or of a tool of an agent. */
export interface ParamPlace {
  block: string
  path: (string | number)[]
  name: string
  type: string
  schema: JsonSchema
  value: Json | undefined
  params: JsonObject
}

export function paramAt(doc: Document, specs: Specs, pointer: string): ParamPlace | null {
  const [, block, , ...rest] = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const own = block === undefined ? undefined : doc.blocks[block]
  if (!own || block === undefined || !rest.length) return null
  let [type, params] = [own.type, own.params ?? {}]
  const path: (string | number)[] = rest.map((part, i) => (rest[0] === 'tools' && i === 1 ? Number(part) : part))
  if (rest[0] === 'tools' && rest[2] === 'params') {
    const tool = Array.isArray(params.tools) ? params.tools[Number(rest[1])] : null
    if (!isObject(tool)) return null
    type = typeof tool.block === 'string' ? tool.block : ''
    params = isObject(tool.params) ? tool.params : {}
  } else if (rest.length > 1) return null
  const name = rest.at(-1)!
  const schema = specs.get(type)?.params.properties?.[name]
  return schema ? { block, path, name, type, schema, value: params[name], params } : null
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
