// Two futures of a run, as the canvas shows them: flax is how it was before, plum is what you changed, and what they share stays in ink.

import { createStore } from 'zustand/vanilla'

export type Future = 'before' | 'you'

/** A part of a text; `changed`: only the new text has it. */
export interface TextPart {
  text: string
  changed: boolean
}

export interface Futures {
  /** Blocks that ran in one of the two alone, and edges that one of them alone took. */
  blocks: ReadonlyMap<string, Future>
  edges: ReadonlyMap<string, Future>
  /** By block: what it put out in each of the two, where that differs. */
  values: ReadonlyMap<string, { before: string; now: string }>
  /** The block that was changed, and its changed words. */
  changed: { block: string; label: string; parts: readonly TextPart[] } | null
}

export const NO_FUTURES: Futures = { blocks: new Map(), edges: new Map(), values: new Map(), changed: null }
export const futuresStore = createStore<Futures>(() => NO_FUTURES)
