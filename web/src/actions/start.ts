// Starting a run of the draft that is open: save it, run exactly that revision, show it.

import { createStore } from 'zustand/vanilla'
import { announce } from '../a11y'
import { api, ApiError } from '../net/api'
import type { Diagnostic, Json, RunAccepted } from '../api/schemas'
import { docStore, flush, specsOf } from '../state/doc'
import { openRun } from '../state/live'
import { READ_ONLY, serverStore } from '../state/server'
import { uiStore } from '../state/ui'
import { formSchema, triggersOf } from '../document/triggers'
import { toast } from '../ui/Toast'
import { goToFinding } from './findings'

/** From which block the shown run shall run again; null: the question is not open. `draft`: with the draft as it is now. */
export const rerunStore = createStore<{ from: string | null; draft: boolean }>(() => ({ from: null, draft: false }))

/** Raises ApiError, and Error when the draft could not be saved (its text says why). */
export async function runDraft(
  input: Json,
  options: { trigger?: string; stopAfter?: string } = {},
): Promise<RunAccepted> {
  await flush()
  const { id, doc, rev, saving, error } = docStore.getState()
  if (id === null) throw new Error('No workflow is open.')
  if (saving === 'conflict') throw new Error('This workflow was changed in another window. Resolve the conflict first.')
  if (saving !== 'saved')
    throw new Error(
      error
        ? `Not run because the workflow could not be saved: ${error}`
        : 'Not run because the workflow could not be saved.',
    )
  const accepted = await api.runDraft(id, input, { rev, ...options })
  announce('Run started')
  // On another page by now, the run is found in the lists: it is not of what is open here.
  if (docStore.getState().id === id) await openRun(accepted.run, { doc })
  return accepted
}

/** Run the draft, or ask for its input first when it has any. */
export async function run(): Promise<void> {
  if (serverStore.getState().readOnly) return void toast(READ_ONLY)
  const { doc } = docStore.getState()
  const triggers = triggersOf(doc, specsOf())
  const asks =
    triggers.length !== 1 ||
    doc.blocks[triggers[0]!.id]?.type === 'webhook' ||
    Object.keys(formSchema(doc, triggers[0]!.id).properties ?? {}).length > 0
  if (starting) return uiStore.setState({ overlay: 'run' })
  starting = true
  try {
    await flush()
    const now = docStore.getState()
    // With several triggers, an error may be where the run does not come by.
    if (triggers.length === 1 && now.saving === 'saved' && refuse(now.diagnostics)) return
    if (asks) uiStore.setState({ overlay: 'run' })
    else await runDraft({})
  } catch (error) {
    // The dialog shows what is wrong.
    if (!(error instanceof ApiError && refuse(error.diagnostics))) uiStore.setState({ overlay: 'run' })
  } finally {
    starting = false
  }
}

let starting = false

/** Show the first error, if there is any: the block, and its field with the focus. */
function refuse(found: readonly Diagnostic[]): boolean {
  const wrong = found.find(({ severity }) => severity === 'error')
  if (!wrong) return false
  goToFinding(docStore.getState().doc, wrong, specsOf())
  toast(`Not run. ${wrong.message}`, 'err')
  return true
}

/** Inputs of the last runs of the open draft, newest first, each once. */
export async function lastInputs(): Promise<Json[]> {
  const { id } = docStore.getState()
  if (id === null) return []
  const seen = new Set<string>()
  return (await api.draftInputs(id))
    .filter((input) => {
      const text = JSON.stringify(input)
      return !seen.has(text) && seen.add(text)
    })
    .slice(0, 10)
}
