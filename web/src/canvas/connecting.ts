// The end of an edge is dropped: on a block, or where a new one begins.

import { connectStore, stopConnecting, targetAt } from '../actions/connect'
import { connect } from '../actions/edit'
import { openPicker } from '../actions/picker'
import type { Point } from '../api/types'
import { shownDocument } from '../state/collapsed'
import { docStore, specsStore } from '../state/doc'
import type { FlowLine } from './flow'
import { pointOf } from './pointer'

export function endConnecting(event: MouseEvent | TouchEvent, at: Point): void {
  const { from, edge } = connectStore.getState()
  if (!from || edge !== null) return
  const { clientX: x, clientY: y } = pointOf(event)
  const doc = shownDocument(docStore.getState().doc)
  const specs = specsStore.getState().specs
  const target = targetAt(doc, specs, at, from.source, from.handle)
  if (target === from.source) return stopConnecting()
  if (target !== null) return stopConnecting(connect(from.source, from.handle, target), { x, y })
  stopConnecting()
  openPicker({ mode: 'add', screen: { x, y }, at, from })
}

/** An end of an edge was dropped elsewhere. On empty space the edge stays as it was. */
export function endReconnecting(event: MouseEvent | TouchEvent, edge: FlowLine, at: Point): void {
  const { from } = connectStore.getState()
  const { clientX: x, clientY: y } = pointOf(event)
  const doc = shownDocument(docStore.getState().doc)
  const target = from && targetAt(doc, specsStore.getState().specs, at, from.source, from.handle)
  if (!from || !target || target === edge.target) return stopConnecting()
  stopConnecting(connect(from.source, from.handle, target, edge.id), { x, y })
}
