// The end of a resize by hand: one command, on the grid.

import { dispatch, docStore } from '../state/doc'
import { NOTE_PREFIX } from './flow'
import { snap } from '../geometry/size'

export function resizeEnd(node: string, box: { x: number; y: number; width: number; height: number }): void {
  const size: [number, number] = [snap(box.width), snap(box.height)]
  const at: [number, number] = [snap(box.x), snap(box.y)]
  if (node.startsWith(NOTE_PREFIX))
    dispatch({ type: 'setNote', id: node.slice(NOTE_PREFIX.length), note: { size, at } })
  else if (docStore.getState().doc.blocks[node]?.type === 'note')
    dispatch({ type: 'setBlock', id: node, fields: { size, at } })
  else dispatch({ type: 'resize', id: node, size, at })
}
