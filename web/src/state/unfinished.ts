// Text of JSON fields that is no JSON yet: it belongs to its block until it is finished or undone, and survives a reload. The
// document never has it.

import { createStore } from 'zustand/vanilla'
import type { Diagnostic } from '../api/schemas'

interface Unfinished {
  draft: string
  block: string
  /** Path below the params, as of the field. */
  path: string
  text: string
}

const KEY = 'weft-unfinished'
/** The oldest are dropped first. */
const KEPT_MAX = 40

export const unfinishedStore = createStore<{ list: readonly Unfinished[] }>(() => ({ list: remembered() }))

export function unfinishedText(draft: string | null, block: string | null, path: string): string | null {
  return (
    unfinishedStore.getState().list.find((each) => each.draft === draft && each.block === block && each.path === path)
      ?.text ?? null
  )
}

/** null: it is finished, or gone. */
export function keepUnfinished(draft: string | null, block: string | null, path: string, text: string | null): void {
  if (draft === null || block === null) return
  const { list } = unfinishedStore.getState()
  const others = list.filter((each) => each.draft !== draft || each.block !== block || each.path !== path)
  if (text === null && others.length === list.length) return
  const next = text === null ? others : [...others, { draft, block, path, text }].slice(-KEPT_MAX)
  unfinishedStore.setState({ list: next })
  try {
    localStorage.setItem(KEY, JSON.stringify(next))
  } catch {
    // Storage is off or full: it lasts as long as the page.
  }
}

/** The same as findings, for the lists that show what is wrong. */
export function unfinishedFindings(list: readonly Unfinished[], draft: string | null): Diagnostic[] {
  return list
    .filter((each) => each.draft === draft)
    .map(({ block, path }) => ({
      severity: 'error',
      code: 'json_unfinished',
      block,
      field: path.split('.')[0]!,
      message: 'This field contains invalid JSON, which is not saved.',
      pointer: `/blocks/${block.replaceAll('~', '~0').replaceAll('/', '~1')}/params/${path.split('.').join('/')}`,
    }))
}

function remembered(): Unfinished[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(stored)
      ? (stored as Unfinished[]).filter(
          (each) => typeof each?.text === 'string' && typeof each.block === 'string' && typeof each.path === 'string',
        )
      : []
  } catch {
    return []
  }
}
