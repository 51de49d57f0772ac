// Selecting a node of a run everywhere at once: the canvas, the inspector and every iteration stepper follow.

import { announce } from '../a11y'
import { runStore } from '../state/live'
import { lookAt, reveal } from './view'
import { sizeOf } from '../geometry/size'
import { specsOf } from '../state/doc'
import { absoluteAt, nameOf } from '../document/document'
import { firstError, iterOf, type NodeState } from '../run'
import { select, uiStore } from '../state/ui'
import { placeOf } from '../run'

export function selectNode(node: Pick<NodeState, 'block' | 'path'>, look = reveal): void {
  uiStore.setState(({ iter }) => ({ iter: { ...iter, ...iterOf(node.path) } }))
  select({ blocks: [node.block] })
  const { doc } = runStore.getState()
  const block = doc?.blocks[node.block]
  // Panels that open with the selection take their room from the canvas first.
  if (doc && block) setTimeout(() => look(absoluteAt(doc, node.block), sizeOf(block, specsOf().get(block.type))), 50)
}

/** Go to the innermost first failure at the moment shown, with the trace open. False: there is none. */
export function goToFirstError(): boolean {
  const { view, doc } = runStore.getState()
  const node = firstError(view)
  if (!node) return false
  selectNode(node, lookAt)
  uiStore.setState({ drawer: 'trace' })
  const where = placeOf(node.path, doc)
  announce(
    `${doc ? nameOf(doc, node.block) : node.block} failed${where ? ` in ${where}` : ''}: ${node.error?.message ?? ''}`,
  )
  return true
}
