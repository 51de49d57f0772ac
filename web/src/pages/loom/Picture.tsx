// The picture: bundles of threads between the blocks, moved and zoomed by hand.

import { useEffect, useMemo, useRef, useState, type PointerEvent, type ReactElement } from 'react'
import type { LoomRun } from '../../api/schemas'
import type { Document } from '../../api/types'
import { indexOf, namedHandles, nameOf, type Specs } from '../../document/document'
import { Button } from '../../ui/Button'
import { LoomCard, pressable } from './Card'
import { bundleOf, frameOf, placesOf, thickness, threads } from './place'
import { isOpen, runsPerThread, runTimes, threadsOf, type Totals } from './totals'

const MARGIN = 40
const ZOOM = { least: 0.1, most: 2, step: 1.25 }

interface View {
  x: number
  y: number
  k: number
}

export function Picture({
  doc,
  specs,
  totals,
  chosen,
  onChoose,
  onOpen,
}: {
  doc: Document
  specs: Specs
  totals: Totals
  /** The block and handle whose runs are listed; a block alone: the runs that failed there. */
  chosen: string | null
  onChoose: (what: string) => void
  onOpen: (run: LoomRun) => void
}): ReactElement {
  const places = useMemo(() => placesOf(doc, specs), [doc, specs])
  const bundles = useMemo(
    () => indexOf(doc).edges.flatMap((edge) => bundleOf(edge, places, specs) ?? []),
    [doc, places, specs],
  )
  const frame = useMemo(() => frameOf(places), [places])
  const { box, view, set, drag, fit } = useView(frame)
  const perThread = runsPerThread(Math.max(1, ...[...totals.blocks.values()].map((block) => block.runs)))
  return (
    <div className="loom__canvas" ref={box} {...drag}>
      <svg className="loom__svg" role="group" aria-label="All runs">
        <g transform={`translate(${view.x} ${view.y}) scale(${view.k})`}>
          {bundles.map((bundle) => {
            const { source, handle } = bundle.edge
            const exit = `${source} ${handle}`
            const inside = handle === 'body' || handle === 'finally'
            const runs = inside ? [...(totals.entered.get(source) ?? NONE)] : (totals.exits.get(exit)?.runs ?? NONE)
            const open = threadsOf(runs.filter(isOpen).length, perThread)
            const ended = threadsOf(runs.filter((run) => !isOpen(run)).length, perThread)
            const all = open + ended
            const label = `${nameOf(doc, source)} to ${nameOf(doc, bundle.edge.target)}, ${runs.length.toLocaleString('en')} runs`
            return (
              <g
                key={`${bundle.edge.index}`}
                className="bundle"
                data-error={handle === 'error' || undefined}
                data-chosen={chosen === exit || undefined}
                data-none={all === 0 || undefined}
                data-exit={exit}
                {...(all ? pressable(label, () => onChoose(exit)) : {})}
              >
                <path className="bundle__hit" d={bundle.thread(0)} strokeWidth={thickness(all) + 20} />
                <path className="bundle__none" d={all ? '' : bundle.thread(0)} />
                <path className="bundle__ended" d={threads(bundle, ended, open, all)} />
                <path className="bundle__open" d={threads(bundle, open, 0, all)} />
                {runs.length ? (
                  <g className="bundle__label" transform={`translate(${bundle.label[0]} ${bundle.label[1]})`}>
                    <rect x={-18} y={-10} width={36} height={20} rx={10} />
                    <text y={4}>{runs.length.toLocaleString('en')}</text>
                  </g>
                ) : null}
              </g>
            )
          })}
          {[...places.values()].map((place) => (
            <LoomCard
              key={place.id}
              place={place}
              name={nameOf(doc, place.id)}
              icon={specs.get(place.block.type)?.icon}
              total={totals.blocks.get(place.id)}
              times={place.shape === 'trigger' ? runTimes(totals.runs) : (totals.blocks.get(place.id)?.times ?? NONE)}
              split={place.shape === 'flow' ? splitOf(doc, specs, totals, place.id) : NONE}
              cells={totals.cells.get(place.id) ?? NONE}
              chosen={chosen === place.id}
              onFailures={onChoose}
              onOpen={onOpen}
            />
          ))}
        </g>
      </svg>
      <div className="loom__zoom" role="group" aria-label="Zoom">
        <Button kind="bare" icon="minus" iconOnly onClick={() => set((v) => around(v, box.current, 1 / ZOOM.step))}>
          Zoom out
        </Button>
        <button type="button" onClick={() => fit()}>{`${Math.round(view.k * 100)}%`}</button>
        <Button kind="bare" icon="plus" iconOnly onClick={() => set((v) => around(v, box.current, ZOOM.step))}>
          Zoom in
        </Button>
      </div>
      <p className="loom__unit">{`1 thread = ${perThread.toLocaleString('en')} ${perThread === 1 ? 'run' : 'runs'}`}</p>
    </div>
  )
}

/** The zoom from which names can be read. */
const READABLE = 0.5
/** No runs, no cells. */
const NONE: never[] = []

function splitOf(doc: Document, specs: Specs, totals: Totals, id: string): { title: string; runs: number }[] {
  return namedHandles(doc.blocks[id]!, specs.get(doc.blocks[id]!.type)).map((handle) => ({
    title: handle.title,
    runs: totals.exits.get(`${id} ${handle.id}`)?.runs.length ?? 0,
  }))
}

function around(view: View, box: HTMLElement | null, by: number, at?: readonly [number, number]): View {
  const k = Math.min(ZOOM.most, Math.max(ZOOM.least, view.k * by))
  const [x, y] = at ?? [(box?.clientWidth ?? 0) / 2, (box?.clientHeight ?? 0) / 2]
  return { k, x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k }
}

function useView(frame: { x: number; y: number; w: number; h: number }) {
  const box = useRef<HTMLDivElement>(null)
  const [view, set] = useState<View>({ x: 0, y: 0, k: 1 })
  const fit = (least: number = ZOOM.least): void => {
    const { clientWidth: w, clientHeight: h } = box.current!
    const k = Math.max(least, Math.min(1, (w - 2 * MARGIN) / frame.w, (h - 2 * MARGIN) / frame.h))
    const x = frame.w * k > w ? MARGIN : (w - frame.w * k) / 2
    set({ k, x: x - frame.x * k, y: (h - frame.h * k) / 2 - frame.y * k })
  }
  // In a small window it begins at the left, as large as it can be read.
  useEffect(() => fit(READABLE), [frame])
  useEffect(() => {
    const element = box.current!
    const wheel = (event: WheelEvent): void => {
      event.preventDefault()
      const area = element.getBoundingClientRect()
      const at = [event.clientX - area.left, event.clientY - area.top] as const
      if (event.ctrlKey || event.metaKey) set((v) => around(v, element, Math.exp(-event.deltaY / 300), at))
      else set((v) => ({ ...v, x: v.x - event.deltaX, y: v.y - event.deltaY }))
    }
    element.addEventListener('wheel', wheel, { passive: false })
    return () => element.removeEventListener('wheel', wheel)
  }, [])
  const held = useRef<readonly [number, number] | null>(null)
  const drag = {
    onPointerDown: (event: PointerEvent): void => {
      if (!(event.target as Element).closest('.bundle, .loomcell, button, [role=button]'))
        held.current = [event.clientX, event.clientY]
    },
    onPointerMove: (event: PointerEvent): void => {
      const from = held.current
      if (!from) return
      held.current = [event.clientX, event.clientY]
      set((v) => ({ ...v, x: v.x + event.clientX - from[0], y: v.y + event.clientY - from[1] }))
    },
    onPointerUp: (): void => void (held.current = null),
    onPointerLeave: (): void => void (held.current = null),
  }
  return { box, view, set, drag, fit }
}
