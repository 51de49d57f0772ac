// Documents as files and as text: export, and import of what is dropped or chosen.

import { api } from '../net/api'
import { repair } from '../net/repair'
import type { Document } from '../api/types'
import { pasteText } from './clipboard'
import { toastUndo } from './undo'
import { fit } from './view'
import { navigate } from '../ui/navigation'
import { dispatch, docStore } from '../state/doc'
import { toast } from '../ui/Toast'

export function exportJson(doc: Document = docStore.getState().doc): void {
  download(`${doc.name || 'workflow'}.json`, `${JSON.stringify(doc, null, 2)}\n`, 'application/json')
}

export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

/** Take a text in: a whole document replaces the one that is open (one undo step), blocks are pasted at `at`, and other formats
 * the server knows open as a new draft. */
export async function importText(text: string, name: string, at?: [number, number]): Promise<void> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return void toast(`“${name}” is not valid JSON.`, 'err')
  }
  if (isDocument(value)) {
    const changed = dispatch({ type: 'replaceDoc', doc: repair(value).document })
    requestAnimationFrame(() => fit())
    if (changed) toastUndo(`Imported “${name}”.`, 'ok')
    else toast(`“${name}” is identical to the open workflow.`)
    return
  }
  if (pasteText(text, at)) return
  try {
    const draft = await api.createDraft(value, name.replace(/\.json$/i, ''))
    navigate(`/w/${draft.id}`)
    toast(`Imported “${name}”.`, 'ok')
  } catch (error) {
    toast(`“${name}” is not a workflow: ${error instanceof Error ? error.message : String(error)}`, 'err')
  }
}

/** Files that were dropped or chosen. */
export async function importFiles(files: Iterable<File>, at?: [number, number]): Promise<void> {
  for (const file of files) await importText(await file.text(), file.name, at)
}

export function chooseFile(): void {
  const input = document.createElement('input')
  input.type = 'file'
  input.accept = '.json,application/json'
  input.onchange = () => void importFiles(input.files ?? [])
  input.click()
}

function isDocument(value: unknown): value is Document {
  if (typeof value !== 'object' || value === null) return false
  const { format, blocks, edges } = value as Partial<Document>
  return (
    typeof format === 'string' &&
    format.startsWith('weft/') &&
    typeof blocks === 'object' &&
    blocks !== null &&
    !Array.isArray(blocks) &&
    Array.isArray(edges)
  )
}
