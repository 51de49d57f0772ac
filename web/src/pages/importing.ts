// Files and texts that become drafts: weft documents, and what the server can turn into one (workflows of Sim). And the input
// an example can be run with at once.

import { api } from '../net/api'
import type { Diagnostic, Json } from '../api/schemas'
import type { Draft, JsonSchema } from '../api/types'

export interface Imported {
  name: string
  draft: Draft
  findings: readonly Diagnostic[]
}

/** Raises Error with words for a person. */
export async function importText(text: string, fileName?: string): Promise<Imported> {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    throw new Error(
      `${fileName ?? 'The text'} is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (document === null || typeof document !== 'object' || Array.isArray(document))
    throw new Error(`${fileName ?? 'The text'} is not a workflow: it must be a JSON object.`)
  const own = (document as { name?: unknown }).name
  const name = typeof own === 'string' && own ? own : fileName?.replace(/\.json$/i, '')
  const draft = await api.createDraft(document, name)
  return { name: draft.name, draft, findings: draft.diagnostics ?? [] }
}

/** The editor, with the list of what is left to do if there is any. */
export const addressOf = ({ id, tasks }: Draft): string => `/w/${id}${tasks?.length ? '?setup=1' : ''}`

/** What a form would begin with: defaults, else the first example of each field. */
export function sampleInput(schema: JsonSchema | null | undefined): Json {
  const input: Record<string, Json> = {}
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const value = field.default ?? field.examples?.[0]
    if (value !== undefined) input[name] = value
  }
  return input
}

/** Save a document as a file of the person. */
export function download(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `${name}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
