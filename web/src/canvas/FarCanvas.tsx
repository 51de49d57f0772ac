// The document from far away, on one canvas element: silhouettes in the tint of their state, no text but the names of containers; from
// 14 % on one mark for each block, those that failed or wait a little larger than their share. Beside it a list that is not seen, so
// that keyboard and screen reader reach every block.

import { useStore as useFlow, useReactFlow } from '@xyflow/react'
import { memo, useDeferredValue, useEffect, useMemo, useRef, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../api/types'
import { readingOrder, nameOf, type Specs } from '../document/document'
import type { Ways } from '../geometry/layout/routes'
import { statusAt } from '../run'
import { futuresStore } from '../state/futures'
import { runStore } from '../state/live'
import { openSheet, select, uiStore } from '../state/ui'
import { wordOf } from '../ui/status'
import { focusNode } from '../actions/view'
import { boxAt, farPlan } from './farItems'
import { coloursOf, drawFar, picture } from './farDraw'
import './css/weave.css'

export default function FarCanvas({
  doc,
  specs,
  ways,
  leaving,
}: {
  doc: Document
  specs: Specs
  ways: Ways
  leaving: boolean
}): ReactElement {
  const canvas = useRef<HTMLCanvasElement>(null)
  const transform = useFlow((s) => s.transform)
  const width = useFlow((s) => s.width)
  const height = useFlow((s) => s.height)
  const view = useStore(runStore, (s) => s.view)
  const ran = useStore(runStore, (s) => s.doc)
  const iter = useStore(uiStore, (s) => s.iter)
  const theme = useStore(uiStore, (s) => s.theme)
  const selected = useStore(uiStore, (s) => s.selection.blocks)
  const futures = useStore(futuresStore, (s) => s.blocks)
  const plan = useMemo(() => farPlan(doc, specs, ways), [doc, specs, ways])
  const drawn = useMemo(() => picture(plan, { doc: ran, view }, iter, futures), [plan, ran, view, iter, futures])
  const flow = useReactFlow()

  useEffect(() => {
    const element = canvas.current
    const context = element?.getContext('2d')
    if (!element || !context || !width || !height) return
    const scale = devicePixelRatio || 1
    const size: [number, number] = [Math.round(width * scale), Math.round(height * scale)]
    if (element.width !== size[0] || element.height !== size[1]) [element.width, element.height] = size
    drawFar(context, drawn, { transform, width, height, scale, selected, colours: coloursOf(element, theme) })
  }, [drawn, transform, width, height, selected, theme])

  useEffect(() => {
    const pane = canvas.current?.closest('.react-flow')
    const at = (event: Event): string | null => {
      if (!(event.target as HTMLElement).classList.contains('react-flow__pane')) return null
      const { clientX, clientY } = event as MouseEvent
      const { x, y } = flow.screenToFlowPosition({ x: clientX, y: clientY }, { snapToGrid: false })
      return boxAt(plan, x, y)?.id ?? null
    }
    const onClick = (event: Event): void => {
      const id = at(event)
      select(id ? { blocks: [id] } : {})
      focusNode(id)
    }
    const onDouble = (event: Event): void => {
      const id = at(event)
      const box = [...plan.blocks, ...plan.containers].find((each) => each.id === id)
      if (!box) return
      event.stopPropagation()
      void flow.setCenter(box.x + box.w / 2, box.y + box.h / 2, { zoom: 1, duration: 160 })
    }
    pane?.addEventListener('click', onClick)
    pane?.addEventListener('dblclick', onDouble)
    return () => {
      pane?.removeEventListener('click', onClick)
      pane?.removeEventListener('dblclick', onDouble)
    }
  }, [flow, plan])

  return (
    <>
      <canvas
        ref={canvas}
        className="weave"
        data-leaving={leaving || undefined}
        data-testid="weave"
        aria-hidden="true"
        style={{ width, height }}
      />
      <BlockList doc={doc} selected={selected[0]} />
    </>
  )
}

/** Every block with its state, in reading order: arrow keys and Alt move on as among the cards. */
const BlockList = memo(function BlockList({
  doc,
  selected,
}: {
  doc: Document
  selected: string | undefined
}): ReactElement {
  const view = useDeferredValue(useStore(runStore, (s) => s.view))
  const ran = useStore(runStore, (s) => s.doc)
  const iter = useStore(uiStore, (s) => s.iter)
  const ids = useMemo(() => readingOrder(doc), [doc])
  const rows = useMemo(
    () =>
      ids.map((id) => {
        const status = ran?.blocks[id] && view.seq ? statusAt(view, ran, id, iter) : 'idle'
        return { id, text: `${nameOf(doc, id)}${status === 'idle' ? '' : `, ${wordOf(status)}`}` }
      }),
    [ids, doc, ran, view, iter],
  )
  const current = selected !== undefined && doc.blocks[selected] ? selected : ids[0]
  return (
    <ul className="visually-hidden" aria-label="Blocks" data-testid="weave-list">
      {rows.map(({ id, text }) => (
        <li key={id}>
          <button
            type="button"
            className="weave__block"
            data-id={id}
            tabIndex={id === current ? 0 : -1}
            aria-pressed={id === selected}
            onFocus={() => select({ blocks: [id] })}
            onClick={() => openSheet(id)}
          >
            {text}
          </button>
        </li>
      ))}
    </ul>
  )
})
