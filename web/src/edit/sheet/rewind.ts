// The changes to a talk before another run continues it: the prompt, and results of calls or answers, by number of the step.

import { createStore } from 'zustand/vanilla'
import type { Json } from '../../api/schemas'
import { api } from '../../net/api'

export const rewindStore = createStore<{ prompt: string | null; steps: Readonly<Record<number, Json>> }>(() => ({
  prompt: null,
  steps: {},
}))

export function forgetChanges(): void {
  rewindStore.setState({ prompt: null, steps: {} })
}

/** undefined takes the change back. */
export function changeStep(n: number, value: Json | undefined): void {
  rewindStore.setState(({ steps }) => {
    const { [n]: _, ...rest } = steps
    return { steps: value === undefined ? rest : { ...rest, [n]: value } }
  })
}

/** The run that continues from event `seq`, or from the changed step. Returns its id. */
export async function rewind(run: string, node: { key: string; block: string }, seq: number): Promise<string> {
  const { prompt, steps } = rewindStore.getState()
  const params = prompt === null ? {} : { params: { [node.block]: { prompt } } }
  const made = Object.keys(steps).length
    ? await api.rewind(run, { steps: { [node.key]: { ...steps } as Record<string, Json> }, ...params })
    : prompt === null
      ? await api.fork(run, seq)
      : await api.rewind(run, { seq, params: { [node.block]: { prompt } } })
  forgetChanges()
  return made.run
}
