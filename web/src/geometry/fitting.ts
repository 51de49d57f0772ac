// What of a document is shown when it is opened: all of it if it can still be recognised then, else its beginning.

import type { Document } from '../api/types'
import { absoluteAt, type Specs } from '../document/document'
import { NOTE_SIZE, sizeOf } from './size'

/** The smallest zoom at which a whole document is shown when it is opened: above it a block shows everything. */
export const WHOLE = 0.6

export interface Box {
  x: number
  y: number
  width: number
  height: number
}

export interface Viewport {
  x: number
  y: number
  zoom: number
}

/** Around what is fitted, in pixels of the screen. */
const EDGE = 40
/** Around what is brought into view, in pixels of the canvas. */
export const MARGIN = 48

/** `room`: the canvas on the screen, in pixels. `all`: what is to be seen; `first`: where it begins. When all of it would be
 * smaller than `least`, its beginning is shown in the size `readable`. */
export function fitted(
  room: { width: number; height: number },
  all: Box,
  first: Box,
  least: number,
  readable = least,
): Viewport {
  const whole = Math.min(1, (room.width - EDGE * 2) / all.width, (room.height - EDGE * 2) / all.height)
  const zoom = whole < least ? readable : whole
  return {
    zoom,
    x: placed(room.width, all.x, all.width, first.x, zoom),
    // A tall document is entered at the height of its first block, not at its top.
    y: placed(room.height, all.y, all.height, first.y + first.height / 2 - (room.height / 2 - EDGE) / zoom, zoom),
  }
}

/** In the middle when all of it has room; else from `first` on, with nothing empty beyond its ends. */
function placed(room: number, from: number, size: number, first: number, zoom: number): number {
  if (size * zoom + EDGE * 2 <= room) return (room - size * zoom) / 2 - from * zoom
  return Math.max(room - EDGE - (from + size) * zoom, Math.min(EDGE - from * zoom, EDGE - first * zoom))
}

/** The zoom at which a box has room with its margins: no larger than `zoom`. Null when that is smaller than both `zoom` and `least`. */
export function zoomFor(room: { width: number; height: number }, box: Box, zoom: number, least: number): number | null {
  const whole = Math.min(zoom, room.width / (box.width + 2 * MARGIN), room.height / (box.height + 2 * MARGIN))
  return whole < zoom && whole < least ? null : whole
}

/** The box around all of a document, or around some of its blocks; null when there are none. */
export function boundsOf(doc: Document, specs: Specs, ids?: readonly string[]): Box | null {
  const boxes = (ids ?? Object.keys(doc.blocks)).flatMap((id): Box[] => {
    const block = doc.blocks[id]
    if (!block) return []
    const [x, y] = absoluteAt(doc, id)
    const [width, height] = sizeOf(block, specs.get(block.type))
    return [{ x, y, width, height }]
  })
  for (const { at, size } of ids ? [] : (doc.notes ?? [])) {
    const [width, height] = size ?? NOTE_SIZE
    boxes.push({ x: at?.[0] ?? 0, y: at?.[1] ?? 0, width, height })
  }
  if (!boxes.length) return null
  const x = Math.min(...boxes.map((box) => box.x))
  const y = Math.min(...boxes.map((box) => box.y))
  const right = Math.max(...boxes.map((box) => box.x + box.width))
  const bottom = Math.max(...boxes.map((box) => box.y + box.height))
  return { x, y, width: right - x, height: bottom - y }
}
