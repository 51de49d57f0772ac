// A moment of a run as an address: /runs/01J9?seq=79&block=score&step=4&iter=review:6&with=01J8. Opening it shows exactly that.

import { compareStore } from './compare'
import { runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { rewindStore } from './rewindStore'

export interface Moment {
  seq: number | null
  block: string | null
  /** A durable step of the block. */
  step: number | null
  iter: Record<string, number>
  /** The run to compare with. */
  with: string | null
  /** A rewind is being prepared. */
  rewind: boolean
}

export function readMoment(query: URLSearchParams): Moment {
  const seq = query.get('seq')
  const iter: Record<string, number> = {}
  for (const part of (query.get('iter') ?? '').split(',')) {
    const at = part.lastIndexOf(':')
    const index = Number(part.slice(at + 1))
    if (at > 0 && Number.isInteger(index) && index >= 0) iter[part.slice(0, at)] = index
  }
  return {
    seq: seq !== null && /^\d{1,9}$/.test(seq) ? Number(seq) : null,
    block: query.get('block'),
    step: /^\d{1,9}$/.test(query.get('step') ?? '') ? Number(query.get('step')) : null,
    iter,
    with: query.get('with'),
    rewind: query.get('rewind') === '1',
  }
}

/** The query of what is shown now; null removes a name. Live runs name no seq. */
export function momentQuery(): Record<'seq' | 'block' | 'step' | 'iter' | 'with' | 'rewind', string | null> {
  const { cursor } = runStore.getState()
  const { selection, step, iter } = uiStore.getState()
  const parts = Object.entries(iter).map(([container, index]) => `${container}:${index}`)
  return {
    seq: cursor === 'live' ? null : String(cursor),
    block: selection.blocks.length === 1 ? selection.blocks[0]! : null,
    step: step === null ? null : String(step),
    iter: parts.length ? parts.join(',') : null,
    with: compareStore.getState().id,
    rewind: rewindStore.getState().open ? '1' : null,
  }
}

/** The whole address of this moment; a live run is pinned to its last event so far. */
export function momentLink(): string {
  const { id, timeline } = runStore.getState()
  const query = new URLSearchParams()
  const now = { ...momentQuery() }
  now.seq ??= String(timeline.seq)
  for (const [name, value] of Object.entries(now)) if (value !== null) query.set(name, value)
  return `${location.origin}/runs/${id}?${query}`
}
