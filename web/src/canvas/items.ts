// What the iterations of a container are about: a short text of each item, for labels beside its number.

import type { Json } from '../api/schemas'
import { itemsOf } from '../refs/preview'
import { specsOf } from '../state/doc'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'

const SHOWN = 24
/** Fields that name a thing, best first. */
const NAMES = ['name', 'title', 'label', 'id', 'key', 'email'] as const

/** By index; '' where there is nothing short to say. Of the run that is shown. */
export function itemTexts(container: string): (index: number) => string {
  const { doc, view, meta } = runStore.getState()
  const block = doc?.blocks[container]
  const counted =
    block?.params?.items === undefined || (block.params.mode !== undefined && block.params.mode !== 'each')
  if (!doc || counted) return () => ''
  const input = meta?.input
  const items = itemsOf(container, {
    view,
    doc,
    iter: uiStore.getState().iter,
    specs: specsOf(),
    ...(input === undefined ? {} : { input }),
  })
  return (index) => shortOf(items?.[index])
}

export function shortOf(item: Json | undefined): string {
  if (item === undefined || item === null) return ''
  if (typeof item === 'number' || typeof item === 'boolean') return String(item)
  if (typeof item === 'string') return cut(item)
  // An entry of an object comes as [key, value].
  if (Array.isArray(item)) return item.length === 2 && typeof item[0] === 'string' ? cut(item[0]) : ''
  const name = NAMES.find((each) => typeof item[each] === 'string' || typeof item[each] === 'number')
  return name === undefined ? '' : cut(String(item[name]))
}

function cut(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > SHOWN ? `${line.slice(0, SHOWN - 1)}…` : line
}
