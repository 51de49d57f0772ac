// A block as a card: the silhouette and the plate of its kind, rail and glyph of its state, its name, what it does or what the run
// recorded for it, and a row for each branch.

import type { NodeProps } from '@xyflow/react'
import { memo, useEffect, useRef, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { namedHandles, type NamedHandle } from '../document/document'
import { dispatch } from '../state/doc'
import { Icon } from '../ui/icons'
import { glyphOf, wordOf } from '../ui/status'
import { durationText, roughly } from '../ui/time'
import { useClock } from '../ui/useClock'
import { AgentBody, ModelLine, Strokes } from './AgentBody'
import { Lines } from './Footer'
import type { CardFlow } from './flow'
import { inPlaceStore } from '../actions/inPlace'
import { useDetail } from './lod'
import { useMark, usePaint, whySkipped, type Paint } from './paint'
import { Plate } from './plate'
import { Silhouette } from './Silhouette'
import { Stub } from './Stub'
import { ErrorPort, Ports, useAim } from './ports'
import { sentenceOf, sentenceText, type Part } from './sentence'
import { shapeOf } from '../geometry/silhouette'
import { focusNode } from '../actions/view'
import { futuresStore } from '../state/futures'

export const BlockNode = memo(function BlockNode({ id, data, selected }: NodeProps<CardFlow>): ReactElement {
  const { block, spec, wired } = data
  const far = useDetail() !== 'near'
  const paint = usePaint(id, block)
  const aim = useAim(id)
  const future = useStore(futuresStore, (s) => s.blocks.get(id))
  const changed = useStore(futuresStore, (s) => s.changed?.block === id)
  const { status, node } = paint
  const rows = namedHandles(block, spec)
  const shape = shapeOf(block, spec)
  const sentence = (lines: 1 | 2): ReactElement => (
    <p className="card__sentence" data-lines={lines} title={sentenceText(block, spec)}>
      <Sentence parts={sentenceOf(block, spec)} />
    </p>
  )
  return (
    <>
      <div
        className="card"
        data-testid={`block-${id}`}
        data-shape={shape}
        data-status={status}
        data-selected={selected}
        data-aim={aim}
        data-stale={paint.stale || undefined}
        data-future={future}
        data-changed={changed || undefined}
        data-disabled={block.enabled === false || undefined}
        data-far={far || undefined}
        title={status === 'skipped' ? `Skipped: ${whySkipped(node)}` : undefined}
      >
        <Silhouette block={block} spec={spec} shape={shape} />
        <div className="card__head">
          <Plate block={block} spec={spec} shape={shape} />
          <div className="card__text">
            <div className="card__title">
              <Name id={id} name={block.name?.trim() || id} />
              {block.pin && !far ? (
                <span className="card__pin" data-testid="pin-mark" title="Its output is pinned: drafts do not run it">
                  <Icon name="pin" size={14} label="Output pinned" />
                </span>
              ) : null}
              {far ? null : <Mark id={id} />}
              <State paint={paint} far={far} />
            </div>
            {far ? null : shape === 'agent' ? (
              <ModelLine block={block} />
            ) : (
              <Lines block={block} spec={spec} paint={paint} sentence={sentence} />
            )}
          </div>
          {shape === 'ticket' && !far ? <Stub block={block} node={node} /> : null}
        </div>
        {far && shape === 'agent' ? <Strokes block={block} paint={paint} /> : null}
        {far ? null : (
          <>
            {shape === 'agent' ? <AgentBody id={id} block={block} paint={paint} /> : null}
            <Branches rows={rows} block={block} route={status === 'idle' ? undefined : node?.route} />
            <ErrorPort id={id} block={block} spec={spec} wired={wired} />
          </>
        )}
      </div>
      {far ? null : <Ports id={id} block={block} spec={spec} wired={wired} />}
    </>
  )
})

/** Glyph, with the time that a running block has taken; the word is its label. */
function State({ paint: { status, node }, far }: { paint: Paint; far: boolean }): ReactElement | null {
  // Its first attempt was lost with the server; what is shown comes from a later one.
  const resumed = !!node?.lost && status === 'succeeded'
  const glyph = resumed ? 'restored' : glyphOf(status)
  const word = resumed ? `${wordOf(status)}, resumed after a restart` : wordOf(status)
  if (!glyph) return null
  return (
    <span className="card__state" title={word}>
      <Icon name={glyph} size={14} label={word} />
      {!far && status === 'running' && node?.startedAt ? <Since at={node.startedAt} /> : null}
      {!far && status === 'retrying' && node ? <span aria-hidden="true">{Math.max(1, node.attempt)}</span> : null}
    </span>
  )
}

/** From one second on: what is shorter would only flicker. */
function Since({ at }: { at: number }): ReactElement | null {
  const ms = useClock(500) - at
  return ms < 1000 ? null : <span aria-hidden="true">{ms < 60_000 ? durationText(ms) : roughly(ms)}</span>
}

export function Mark({ id }: { id: string }): ReactElement | null {
  const mark = useMark(id)
  return mark ? (
    <span className="card__mark" data-severity={mark.severity} title={mark.message}>
      <Icon name="warning" size={14} label={`${mark.severity}: ${mark.message}`} />
    </span>
  ) : null
}

export function Sentence({ parts }: { parts: readonly Part[] }): ReactElement {
  return (
    <>{parts.map((part, i) => (part.code ? <Chip key={i} text={part.text} /> : <span key={i}>{part.text}</span>))}</>
  )
}

/** A reference alone needs no brackets: it is a chip. */
function Chip({ text }: { text: string }): ReactElement {
  const [, name] = /^<([^<>]+)>$/.exec(text) ?? []
  return (
    <code className="card__chip" data-ref={name !== undefined || undefined}>
      {name ?? text}
    </code>
  )
}

/** One row for each case, route or action. `route`: the branch that the run took. */
function Branches({
  rows,
  block,
  route,
}: Pick<CardFlow['data'], 'block'> & { rows: NamedHandle[]; route: string | null | undefined }): ReactElement | null {
  if (!rows.length) return null
  const rules = rulesOf(block)
  return (
    <ul className="card__rows">
      {rows.map((row) => (
        <li
          key={row.id}
          data-route={route === undefined || route === null ? undefined : route === row.id ? 'taken' : 'not'}
        >
          {rules.has(row.id) ? <code title={rules.get(row.id)}>{rules.get(row.id)}</code> : <span />}
          <span className="card__branch">{row.title}</span>
        </li>
      ))}
    </ul>
  )
}

/** The expressions or values of branches; a single question stands in the sentence already. */
function rulesOf({ type, params }: CardFlow['data']['block']): Map<string, string> {
  const rules = new Map<string, string>()
  const list = type === 'condition' ? params?.cases : type === 'router' ? params?.routes : null
  for (const item of Array.isArray(list) ? list : []) {
    if (!item || typeof item !== 'object' || Array.isArray(item) || typeof item.id !== 'string') continue
    const rule = item.when ?? item.equals
    if (rule !== undefined && rule !== null && rule !== '')
      rules.set(item.id, typeof rule === 'string' ? rule : JSON.stringify(rule))
  }
  return type === 'condition' && rules.size < 2 ? new Map() : rules
}

/** The name; a text field while it is being changed (F2). */
export function Name({ id, name }: { id: string; name: string }): ReactElement {
  const editing = useStore(inPlaceStore, (s) => s.rename === id)
  return editing ? (
    <Rename id={id} name={name} />
  ) : (
    <span className="card__name" title={name}>
      {name}
    </span>
  )
}

function Rename({ id, name }: { id: string; name: string }): ReactElement {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.select(), [])
  const end = (keep: boolean): void => {
    if (inPlaceStore.getState().rename !== id) return
    inPlaceStore.setState({ rename: null })
    const next = input.current?.value.trim()
    if (keep && next && next !== name) dispatch({ type: 'rename', id, name: next })
    focusNode(id)
  }
  return (
    <input
      ref={input}
      type="text"
      className="card__rename nodrag nopan"
      aria-label="Name"
      defaultValue={name}
      autoFocus
      spellCheck={false}
      maxLength={120}
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key === 'Enter') end(true)
        else if (event.key === 'Escape') end(false)
      }}
    />
  )
}
