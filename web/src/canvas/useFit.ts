// Where the canvas looks by itself: at a document when it is opened; at all of it still, when the panels beside it come and go
// before the canvas was used; at the selected block, when a panel would have covered it.

import type { ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef } from 'react'
import type { Document } from '../api/types'
import { absoluteAt, readingOrder, type Specs } from '../document/document'
import { uiStore } from '../state/ui'
import { boundsOf, fitted, WHOLE, type Viewport } from '../geometry/fitting'
import type { FlowLine, FlowNode } from './flow'
import { READABLE, ZOOM_MIN } from './lod'
import { sizeOf } from '../geometry/size'
import { forgetAdded, reveal } from '../actions/view'

const SETTLE_MS = 60

export interface Fit {
  /** Fit all of it, however small. */
  all(ms: number): void
  /** The view was moved, or something in it was pressed: it stays where it is. */
  moved(): void
}

/** `id`: of what is shown, null until it is there. */
export function useFit(
  flow: ReactFlowInstance<FlowNode, FlowLine>,
  frame: React.RefObject<HTMLDivElement | null>,
  id: string | null,
  doc: Document,
  specs: Specs,
): Fit {
  const done = useRef<string | null>(null)
  const still = useRef(false)
  const shown = useRef({ doc, specs })
  shown.current = { doc, specs }
  const fit = useRef<Fit>(null)
  fit.current ??= {
    all: (ms) => {
      still.current = false
      const to = viewport(true)
      if (to) void flow.setViewport(to, { duration: ms })
    },
    moved: () => {
      still.current = false
    },
  }

  /** Of everything, however small; else as a document is opened. */
  function viewport(everything = false): Viewport | null {
    const room = frame.current?.getBoundingClientRect()
    const all = boundsOf(shown.current.doc, shown.current.specs)
    return room?.width && all?.width
      ? fitted(
          room,
          all,
          firstOf(shown.current.doc, shown.current.specs) ?? all,
          everything ? ZOOM_MIN : WHOLE,
          everything ? ZOOM_MIN : READABLE,
        )
      : null
  }

  const empty = Object.keys(doc.blocks).length === 0
  useEffect(() => {
    if (id === null || empty || done.current === id) return
    done.current = id
    const turn = requestAnimationFrame(() => {
      const to = viewport()
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
        const [selected, ...more] = uiStore.getState().selection.blocks
        const block = selected === undefined || more.length ? undefined : shown.current.doc.blocks[selected]
        if (still.current) {
          const to = viewport()
          if (to) void flow.setViewport(to)
        }
        if (block && (smaller || still.current))
          reveal(absoluteAt(shown.current.doc, selected!), sizeOf(block, shown.current.specs.get(block.type)))
      }, SETTLE_MS)
    })
    const pressed = (): void => {
      forgetAdded()
      fit.current?.moved()
    }
    seen.observe(canvas)
    canvas.addEventListener('pointerdown', pressed)
    return () => {
      canvas.removeEventListener('pointerdown', pressed)
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
