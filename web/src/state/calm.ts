// Blocks that were just added: what is missing in them is not held against them until their form is left or a run is asked for.

import { createStore } from 'zustand/vanilla'
import { docStore } from './doc'
import { uiStore } from './ui'

/** `asked`: how often a person asked for all findings. */
export const calmStore = createStore<{ fresh: ReadonlySet<string>; asked: number }>(() => ({
  fresh: new Set(),
  asked: 0,
}))

let known = new Set(Object.keys(docStore.getState().doc.blocks))

docStore.subscribe((now, before) => {
  if (now.doc === before.doc && now.id === before.id) return
  const blocks = Object.keys(now.doc.blocks)
  // Another document, and one that is replaced as a whole, is nothing that a person has just begun.
  const added = now.id === before.id && known.size ? blocks.filter((id) => !known.has(id)) : []
  known = new Set(blocks)
  if (now.id !== before.id) calmStore.setState({ fresh: new Set() })
  else if (added.length) calmStore.setState(({ fresh }) => ({ fresh: new Set([...fresh, ...added]) }))
})

/** From now on the form of this block, or of all blocks, shows what is missing. */
export function showFindings(block?: string): void {
  calmStore.setState(({ fresh, asked }) => ({
    asked: asked + 1,
    fresh:
      block === undefined ? new Set() : fresh.has(block) ? new Set([...fresh].filter((id) => id !== block)) : fresh,
  }))
}

// A run that cannot begin opens this dialog, too.
uiStore.subscribe((now, before) => {
  if (now.overlay === 'run' && before.overlay !== 'run') showFindings()
})
