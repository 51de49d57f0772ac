// Containers that are shown as their head only. Kept in this browser by the name of the workflow: the document knows nothing of it.

import { createStore } from 'zustand/vanilla'
import type { Block, Document } from '../api/types'
import { chainOf } from '../document/document'
import { collapsedCopy } from '../geometry/size'
import { uiStore } from './ui'

const KEY = 'weft-collapsed'
const WORKFLOWS_KEPT = 50
const NONE: readonly string[] = []

type Collapsed = Readonly<Record<string, readonly string[]>>

export const collapsedStore = createStore<{ byName: Collapsed }>(() => ({ byName: remembered() }))

/** The collapsed containers of a workflow. */
export const collapsedOf = (byName: Collapsed, doc: Document): readonly string[] => byName[doc.name ?? ''] ?? NONE

export function setCollapsed(doc: Document, id: string, on: boolean): void {
  const { byName } = collapsedStore.getState()
  const name = doc.name ?? ''
  const before = collapsedOf(byName, doc)
  if (before.includes(id) === on) return
  const others = Object.entries(byName).filter(([other]) => other !== name)
  const ids = on ? [...before, id] : before.filter((other) => other !== id)
  const next = Object.fromEntries([...others, ...(ids.length ? [[name, ids] as const] : [])].slice(-WORKFLOWS_KEPT))
  collapsedStore.setState({ byName: next })
  try {
    localStorage.setItem(KEY, JSON.stringify(next))
  } catch {
    // Storage may be off; then nothing is remembered.
  }
}

let last: { doc: Document; ids: readonly string[]; shown: Document } | null = null
const copies = new WeakMap<Block, Block>()

/** The document as it is shown: without what is inside collapsed containers, which are as high as their heads. */
export function shownDocument(doc: Document): Document {
  const ids = collapsedOf(collapsedStore.getState().byName, doc).filter((id) => doc.blocks[id])
  if (!ids.length) return doc
  if (last?.doc === doc && last.ids.length === ids.length && last.ids.every((id, i) => id === ids[i])) return last.shown
  const closed = new Set(ids)
  const hidden = (id: string): boolean => chainOf(doc, id).some((container) => closed.has(container))
  const blocks: Record<string, Block> = {}
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (hidden(id)) continue
    if (!closed.has(id)) {
      blocks[id] = block
      continue
    }
    const copy = copies.get(block) ?? collapsedCopy(block)
    copies.set(block, copy)
    blocks[id] = copy
  }
  const gone = (id: string): boolean => !!doc.blocks[id] && !blocks[id]
  const edges = doc.edges.filter(({ source, target }) => !gone(source) && !gone(target))
  last = { doc, ids, shown: { ...doc, blocks, edges } }
  return last.shown
}

/** Expand the containers around the selected blocks. */
export function expandAround(doc: Document): void {
  for (const id of uiStore.getState().selection.blocks)
    if (doc.blocks[id]) for (const container of chainOf(doc, id)) setCollapsed(doc, container, false)
}

function remembered(): Collapsed {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    return stored && typeof stored === 'object' && !Array.isArray(stored) ? (stored as Collapsed) : {}
  } catch {
    return {}
  }
}
