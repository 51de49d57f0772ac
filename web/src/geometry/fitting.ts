// What of a document is shown when it is opened: all of it if it can still be recognised then, else its beginning.

/** The smallest zoom at which a whole document is shown when it is opened: names can still be read. */
export const WHOLE = 0.5

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
