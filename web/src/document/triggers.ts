// The blocks that a run can begin with, and the form of each.

import { asSchema } from '../net/repair'
import type { Json } from '../api/schemas'
import type { Document, JsonSchema } from '../api/types'
import { isTrigger, nameOf, type Specs } from './document'

export interface Trigger {
  id: string
  name: string
}

/** Blocks a run of this document can begin with. */
export function triggersOf(doc: Document, specs: Specs): Trigger[] {
  return Object.entries(doc.blocks)
    .filter(([, block]) => isTrigger(block, specs) && block.enabled !== false)
    .map(([id]) => ({ id, name: nameOf(doc, id) }))
}

/** What a message of a chat begins with; here it is typed by hand. */
const CHAT_INPUT: JsonSchema = {
  type: 'object',
  properties: {
    message: { type: 'string', title: 'Message', maxLength: 8000 },
    conversation: { type: 'string', title: 'Conversation', default: 'test' },
  },
  required: ['message'],
}

/** The schema of a start block's field of this type. */
export function schemaOfType(type: Json | undefined): JsonSchema {
  if (type === 'file') return { type: 'object', format: 'file' }
  return typeof type === 'string' && type !== 'any' ? { type } : {}
}

/** The schema of the form: the workflow's input united with the start block's fields. Without properties: anything goes. */
export function formSchema(doc: Document, trigger: string | null): JsonSchema {
  const block = trigger === null ? undefined : doc.blocks[trigger]
  // What a webhook begins with is a request; the workflow's input is for the others.
  if (block?.type === 'webhook') {
    const body = asSchema(block.params?.body_schema)
    return {
      type: 'object',
      properties: { body: { title: 'Body', ...body } },
      required: block.params?.body_schema ? ['body'] : [],
    }
  }
  if (block?.type === 'chat_trigger') return CHAT_INPUT
  // A form has fields of its own, or else those of the workflow's input.
  const own = block?.type === 'form_trigger' ? asSchema(block.params?.fields) : undefined
  if (own?.properties) return { ...own, type: 'object' }
  const declared = doc.input ?? {}
  const properties: Record<string, JsonSchema> = { ...declared.properties }
  const required = new Set(declared.required ?? [])
  const fields = block?.type === 'form_trigger' ? [] : block?.params?.fields
  for (const field of Array.isArray(fields) ? fields : []) {
    if (!field || typeof field !== 'object' || Array.isArray(field) || typeof field.name !== 'string' || !field.name)
      continue
    const type = schemaOfType(field.type)
    const words = Object.fromEntries(
      (['title', 'description', 'default'] as const).flatMap((key) =>
        field[key] === undefined ? [] : [[key, field[key]]],
      ),
    )
    properties[field.name] = { ...type, ...words, ...properties[field.name] }
    if (field.required === true && field.default === undefined) required.add(field.name)
  }
  return { type: 'object', properties, required: [...required] }
}
