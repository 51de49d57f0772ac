// Starting a run of the draft that is open: save it, run exactly that revision, show it.

import { announce } from '../../a11y'
import { api } from '../../net/api'
import type { Json, RunAccepted } from '../../net/types'
import { docStore, flush } from '../../state/doc'
import { openRun } from '../../state/live'

/** Raises ApiError, and Error when the draft could not be saved (its text says why). */
export async function runDraft(input: Json, options: { trigger?: string; stopAfter?: string } = {}): Promise<RunAccepted> {
  await flush()
  const { id, doc, rev, saving, error } = docStore.get()
  if (id === null) throw new Error('No workflow is open.')
  if (saving === 'conflict') throw new Error('Somebody else has saved this workflow meanwhile. Settle that first; then it can run.')
  if (saving !== 'saved') throw new Error(error ? `The workflow could not be saved, so it was not run: ${error}` : 'The workflow could not be saved, so it was not run.')
  const accepted = await api.runDraft(id, input, { rev, ...options })
  announce('run started')
  // On another page by now, the run is found in the lists: it is not of what is open here.
  if (docStore.get().id === id) await openRun(accepted.run, { doc })
  return accepted
}

/** Inputs of the last runs of the open draft, newest first, each once. */
export async function lastInputs(): Promise<Json[]> {
  const { id } = docStore.get()
  if (id === null) return []
  const seen = new Set<string>()
  return (await api.draftInputs(id)).filter((input) => {
    const text = JSON.stringify(input)
    return !seen.has(text) && seen.add(text)
  }).slice(0, 10)
}
