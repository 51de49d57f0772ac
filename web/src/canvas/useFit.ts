// Where the canvas looks by itself: at a document when it is opened; at all of it still, when the panels beside it come and go
// and nobody has moved the view; at the selected block, when a panel would have covered it.

import type { ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef } from 'react'
import type { Document } from '../net/types'
import { absoluteAt, readingOrder, type Specs } from '../state/document'
import { uiStore } from '../state/ui'
import { fitted, type Viewport } from './fitting'
import type { FlowLine, FlowNode } from './flow'
import { READABLE } from './lod'
import { sizeOf } from './size'
import { reveal } from './view'

const SETTLE_MS = 60

export interface Fit {
  /** Fit all of it, no smaller than can be read; when it stands like that already, however small. */
  all(ms: number): void
  /** Somebody moved the view: it stays where it is. */
  moved(): void
}

/** `id`: of what is shown, null until it is there. */
export function useFit(flow: ReactFlowInstance<FlowNode, FlowLine>, frame: React.RefObject<HTMLDivElement | null>, id: string | null, doc: Document, specs: Specs): Fit {
  const done = useRef<string | null>(null)
  const still = useRef(false)
  const shown = useRef({ doc, specs })
  shown.current = { doc, specs }
  const fit = useRef<Fit>(null)
  fit.current ??= {
    all: (ms) => {
      const readable = viewport(READABLE)
      const now = flow.getViewport()
      const already = readable && Math.abs(now.zoom - readable.zoom) < 0.01 && Math.abs(now.x - readable.x) < 2 && Math.abs(now.y - readable.y) < 2
      still.current = !already
      const to = already ? viewport(0.05) : readable
      if (to) void flow.setViewport(to, { duration: ms })
    },
    moved: () => {
      still.current = false
    },
  }

  function viewport(least: number): Viewport | null {
    const room = frame.current?.getBoundingClientRect()
    const all = flow.getNodesBounds(flow.getNodes().map((node) => node.id))
    return room?.width && all.width ? fitted(room, all, firstOf(shown.current.doc, shown.current.specs) ?? all, least) : null
  }

  const empty = Object.keys(doc.blocks).length === 0
  useEffect(() => {
    if (id === null || empty || done.current === id) return
    done.current = id
    const turn = requestAnimationFrame(() => {
      const to = viewport(READABLE)
      if (!to) return
      still.current = true
      void flow.setViewport(to)
    })
    return () => cancelAnimationFrame(turn)
  }, [id, empty])

  useEffect(() => {
    const canvas = frame.current
    if (!canvas) return
    let { width, height } = canvas.getBoundingClientRect()
    let timer: ReturnType<typeof setTimeout> | undefined
    const seen = new ResizeObserver(() => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        const now = canvas.getBoundingClientRect()
        if (!now.width || (now.width === width && now.height === height)) return
        const smaller = now.width < width || now.height < height
        ;({ width, height } = now)
        const [selected, ...more] = uiStore.get().selection.blocks
        const block = selected === undefined || more.length ? undefined : shown.current.doc.blocks[selected]
        if (still.current) {
          const to = viewport(READABLE)
          if (to) void flow.setViewport(to)
        }
        if (block && (smaller || still.current)) reveal(absoluteAt(shown.current.doc, selected!), sizeOf(block, shown.current.specs.get(block.type)))
      }, SETTLE_MS)
    })
    seen.observe(canvas)
    return () => {
      clearTimeout(timer)
      seen.disconnect()
    }
  }, [flow, frame])

  return fit.current
}

/** The box of what a run begins with. */
function firstOf(doc: Document, specs: Specs): { x: number; y: number; width: number; height: number } | null {
  const first = readingOrder(doc)[0]
  if (first === undefined) return null
  const [x, y] = absoluteAt(doc, first)
  const [width, height] = sizeOf(doc.blocks[first]!, specs.get(doc.blocks[first]!.type))
  return { x, y, width, height }
}
