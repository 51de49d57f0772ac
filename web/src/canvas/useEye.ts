// Answers the questions of the editor about the view of the canvas, and lets edges that are drawn follow the pointer.

import { getViewportForBounds, type ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef, type RefObject } from 'react'
import { connectStore, connectTo } from '../actions/connect'
import { setEye } from '../actions/view'
import type { Document } from '../api/types'
import type { Specs } from '../document/document'
import { boundsOf } from '../geometry/fitting'
import { shownDocument } from '../state/collapsed'
import { docStore, specsStore } from '../state/doc'
import type { FlowLine, FlowNode } from './flow'
import { ZOOM_MIN } from './lod'
import type { Fit } from './useFit'

export function useEye(
  flow: ReactFlowInstance<FlowNode, FlowLine>,
  frame: RefObject<HTMLDivElement | null>,
  all: Fit,
  doc: Document,
  specs: Specs,
): void {
  const shown = useRef({ doc, specs })
  shown.current = { doc, specs }
  useEffect(() => {
    setEye({
      toCanvas: (screen) => {
        const { x, y } = flow.screenToFlowPosition(screen, { snapToGrid: false })
        return [x, y]
      },
      zoom: () => flow.getZoom(),
      zoomTo: (zoom, duration) => {
        all.moved()
        void flow.zoomTo(zoom, { duration })
      },
      fit: (ids, duration) => {
        if (!ids) return all.all(duration)
        all.moved()
        const box = boundsOf(shown.current.doc, shown.current.specs, ids)
        const room = frame.current?.getBoundingClientRect()
        if (!box || !room) return
        const to = getViewportForBounds(box, room.width, room.height, ZOOM_MIN, 1, 0.12)
        void flow.setViewport(to, { duration })
      },
      center: (at, zoom, duration) => {
        all.moved()
        // The smooth way zooms out and in again, and a move that comes in between would keep that zoom.
        void flow.setCenter(at[0], at[1], { zoom, duration, interpolate: 'linear' })
      },
      box: () => frame.current?.getBoundingClientRect() ?? new DOMRect(),
    })
    const onMove = (event: PointerEvent): void => {
      if (!connectStore.getState().from) return
      const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }, { snapToGrid: false })
      connectTo(shownDocument(docStore.getState().doc), specsStore.getState().specs, [x, y], {
        x: event.clientX,
        y: event.clientY,
      })
    }
    addEventListener('pointermove', onMove, true)
    return () => {
      removeEventListener('pointermove', onMove, true)
      setEye(null)
    }
  }, [flow, frame, all])
}
