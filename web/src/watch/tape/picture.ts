// The Tape as a picture: what its painter draws now, as a PNG.

import { createStore } from 'zustand/vanilla'

export interface Picture {
  width: number
  height: number
  paper: string
  paint: (ctx: CanvasRenderingContext2D) => void
}

/** The picture on the Tape, or null. */
export const pictureStore = createStore<{ now: Picture | null }>(() => ({ now: null }))

/** Show that this can be saved, until the returned function is called. */
export function offerPicture(now: Picture): () => void {
  pictureStore.setState({ now })
  return () => pictureStore.setState((s) => (s.now === now ? { now: null } : s))
}

const SCALE = 2

/** Save the picture as a file. */
export function savePicture(name: string): void {
  const { now } = pictureStore.getState()
  if (!now) return
  const canvas = document.createElement('canvas')
  canvas.width = now.width * SCALE
  canvas.height = now.height * SCALE
  const ctx = canvas.getContext('2d')
  if (!ctx) return
  ctx.setTransform(SCALE, 0, 0, SCALE, 0, 0)
  now.paint(ctx)
  // Painters begin with an empty ground: it is filled below what they drew.
  ctx.globalCompositeOperation = 'destination-over'
  ctx.fillStyle = now.paper
  ctx.fillRect(0, 0, now.width, now.height)
  canvas.toBlob((blob) => {
    if (!blob) return
    const link = document.createElement('a')
    link.href = URL.createObjectURL(blob)
    link.download = name
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  })
}
