// The code of a durable function. Lines that call a step, a wait or a workflow are marked; in a run, with what became of them.

import { memo, useEffect, useMemo, useRef, type ReactElement } from 'react'
import type { Listing } from '../../api/types'
import type { LaneItem } from '../../run/lane'
import { Icon, type IconName } from '../../ui/icons'
import { glyphOf, toneOf, wordOf } from '../../ui/status'
import { choose } from './choose'
import { highlighted, type Part } from './python'
import { shortName } from '../../run'
import { grouped, idOf } from './rows'

const MARKS: Readonly<Record<string, IconName>> = { step: 'function', wait: 'wait', call: 'run_workflow' }
const MARK_WORDS: Readonly<Record<string, string>> = { step: 'step', wait: 'wait', call: 'workflow' }

export interface SourceProps {
  listing: Listing
  /** The calls of the run that is shown; none before a run. */
  items?: readonly LaneItem[]
  /** The id of the chosen one. */
  chosen?: string | null
}

export function Source({ listing, items = [], chosen = null }: SourceProps): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const lines = useMemo(() => highlighted(listing.text.replace(/\n$/, '').split('\n')), [listing])
  const byLine = useMemo(() => grouped(items, (item) => item.line), [items])
  const marks = useMemo(() => grouped(listing.calls, ([line]) => line), [listing])
  const current = items.find((item) => idOf(item) === chosen)?.line ?? null
  // It begins at the function, wherever that is in the file.
  useEffect(() => {
    const line = box.current?.querySelector<HTMLElement>(`[data-line="${listing.line}"]`)
    if (line) box.current!.scrollTop = line.offsetTop - 24
  }, [listing])
  useEffect(() => {
    const line = current === null ? null : box.current?.querySelector<HTMLElement>(`[data-line="${current}"]`)
    line?.scrollIntoView({ block: 'nearest' })
  }, [current])
  return (
    <section className="source" aria-label={`Source, ${listing.file}`} data-testid="source">
      <header className="source__head">
        <span className="mono">{listing.file}</span>
      </header>
      <div className="source__lines" ref={box} tabIndex={0} role="region" aria-label={`Code of ${listing.file}`}>
        <div className="source__all">
          {lines.map((parts, at) => {
            const line = listing.first_line + at
            return (
              <Line
                key={line}
                line={line}
                parts={parts}
                current={line === current}
                marks={marks.get(line)}
                items={byLine.get(line)}
                chosen={line === current ? chosen : null}
              />
            )
          })}
        </div>
      </div>
    </section>
  )
}

interface LineProps {
  line: number
  parts: readonly Part[]
  current: boolean
  marks: Listing['calls'] | undefined
  items: readonly LaneItem[] | undefined
  chosen: string | null
}

const Line = memo(function Line({ line, parts, current, marks, items, chosen }: LineProps): ReactElement {
  const last = items?.at(-1)
  const named = marks ? [...new Set(marks.map(([, kind, name]) => `${MARK_WORDS[kind]} ${name}`))].join(', ') : ''
  const status = worstOf(items)
  // A click goes from one call of the line to the next.
  const go = (): void => {
    if (!items?.length) return
    const at = items.findIndex((item) => idOf(item) === chosen)
    choose(items[(at + 1) % items.length]!)
  }
  return (
    <div
      className="source__line"
      data-line={line}
      data-called={items ? '' : undefined}
      aria-current={current || undefined}
      onClick={items ? go : undefined}
    >
      <span className="source__number mono" aria-hidden="true">
        {line}
      </span>
      <span className="source__mark" title={named || undefined}>
        {last && status ? (
          <button
            type="button"
            className="source__calls"
            data-tone={toneOf(status)}
            aria-label={`Line ${line}, ${items!.length === 1 ? shortName(last.name) : `${items!.length} calls`}: ${wordOf(status)}`}
            onClick={(event) => {
              event.stopPropagation()
              go()
            }}
          >
            <Icon name={glyphOf(status) ?? 'function'} size={12} />
            {items!.length > 1 ? <span className="mono">{items!.length > 999 ? '999+' : items!.length}</span> : null}
          </button>
        ) : marks ? (
          <span role="img" aria-label={named}>
            <Icon name={MARKS[marks[0]![1]] ?? 'function'} size={12} />
          </span>
        ) : null}
      </span>
      <code className="source__code" data-marked={marks ? '' : undefined}>
        {parts.map(([kind, text], at) =>
          kind ? (
            <span key={at} data-part={kind}>
              {text}
            </span>
          ) : (
            text
          ),
        )}
      </code>
    </div>
  )
})

const ORDER = ['failed', 'attention', 'waiting', 'retrying', 'running', 'succeeded', 'cancelled'] as const

/** What needs attention first. */
function worstOf(items: readonly LaneItem[] | undefined): (typeof ORDER)[number] | undefined {
  if (!items) return undefined
  const found = new Set(items.map((item) => (item.status === 'lost' ? 'attention' : item.status)))
  return ORDER.find((each) => found.has(each))
}
