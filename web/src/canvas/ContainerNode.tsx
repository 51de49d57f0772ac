// A loop or a parallel: its blocks stand inside it. The header says how far it has come and which iteration is looked at; that
// choice drives the blocks inside, the inspector and the trace.

import { NodeResizer, type NodeProps } from '@xyflow/react'
import { memo, useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText } from '../keys'
import { serverNow } from '../net/clock'
import { setCollapsed } from '../state/collapsed'
import { docStore, specsOf } from '../state/doc'
import { futuresStore } from '../state/futures'
import { runStore } from '../state/live'
import { indexOf } from '../document/document'
import { firstFailed, slowest } from '../run'
import { setIter } from '../state/ui'
import { Icon } from '../ui/icons'
import { Menu, type MenuEntry } from '../ui/Menu'
import { glyphOf, wordOf } from '../ui/status'
import { Mark, Name, Sentence } from './BlockNode'
import { stepIteration } from './commands'
import { dropStore } from '../actions/connect'
import { Words } from './Footer'
import { Plate } from './plate'
import type { ContainerFlow } from './flow'
import { itemTexts } from './items'
import { useDetail } from './lod'
import { usePaint, useRounds, whySkipped, type Rounds } from './paint'
import { ErrorPort, Ports, useAim } from './ports'
import { sentenceOf, sentenceText } from './sentence'
import { CONTAINER_MIN, isCollapsed, sizeOf } from '../geometry/size'
import { useMode } from './mode'
import { resizeEnd } from './resize'

export const ContainerNode = memo(function ContainerNode({
  id,
  data,
  selected,
  width = 0,
}: NodeProps<ContainerFlow>): ReactElement {
  const { block, spec, wired } = data
  const far = useDetail() !== 'near'
  const mode = useMode()
  const paint = usePaint(id, block)
  const rounds = useRounds(id)
  const aim = useAim(id)
  const future = useStore(futuresStore, (s) => s.blocks.get(id))
  const drop = useStore(dropStore, (s) => (s.into === id ? (s.refused ? 'refused' : 'into') : undefined))
  const { status, node } = paint
  const collapsed = isCollapsed(block)
  // The failures that are counted in the header say it already.
  const glyph = status === 'failed' && rounds?.failed ? null : glyphOf(status)
  const name = block.name?.trim() || id
  const sentence = sentenceText(block, spec)
  const stepper = !!rounds && rounds.count > 0 && !far
  const textOf = useMemo(() => itemTexts(id), [id, rounds])
  const counted = stepper && hasRoom(width - countsW(rounds), name, 0, true, rounds.failed)
  const bars = counted ? countsW(rounds) : 0
  const roomy = stepper && textOf(rounds.index) !== '' && hasRoom(width - bars - ITEM_W, name, 0, true, rounds.failed)
  const min = selected && mode === 'edit' ? leastSize(id) : CONTAINER_MIN
  return (
    <>
      <div
        className="container"
        data-testid={`block-${id}`}
        data-status={status}
        data-selected={selected}
        data-aim={aim}
        data-drop={drop}
        data-far={far || undefined}
        data-collapsed={collapsed || undefined}
        data-stale={paint.stale || undefined}
        data-future={future}
        data-disabled={block.enabled === false || undefined}
        title={status === 'skipped' ? `Skipped: ${whySkipped(node)}` : undefined}
      >
        {selected && mode === 'edit' && !collapsed ? (
          <NodeResizer
            minWidth={min[0]}
            minHeight={min[1]}
            lineClassName="resize__line"
            handleClassName="resize__grip"
            onResizeEnd={(_, box) => resizeEnd(id, box)}
          />
        ) : null}
        <div className="container__head">
          {far ? null : <Fold id={id} name={name} collapsed={collapsed} />}
          <Plate block={block} spec={spec} shape="container" />
          <Name id={id} name={name} />
          {far || !hasRoom(width - bars - (roomy ? ITEM_W : 0), name, sentence.length, stepper, rounds?.failed ?? 0) ? (
            <span className="container__fill" />
          ) : (
            <span className="container__sentence" title={sentence}>
              <Sentence parts={sentenceOf(block, spec)} />
            </span>
          )}
          {far ? null : <Mark id={id} />}
          {counted ? <Counts rounds={rounds} /> : null}
          {rounds && stepper ? (
            <IterationStepper
              id={id}
              name={name}
              rounds={rounds}
              textOf={textOf}
              roomy={roomy}
              kind={spec?.container ?? block.type}
            />
          ) : null}
          {glyph ? (
            <span className="card__state" title={wordOf(status)}>
              <Icon name={glyph} size={14} label={wordOf(status)} />
            </span>
          ) : null}
        </div>
        {data.empty && mode === 'edit' && !far && !collapsed ? (
          <p className="container__empty">Drop a block here or press {keyText('add')}</p>
        ) : null}
        {status === 'failed' || status === 'handled' ? (
          <div className="container__foot">{Words({ block, spec, paint })?.text}</div>
        ) : null}
        {collapsed ? null : (
          <span className="container__end" title="An iteration ends when all blocks in it have finished." />
        )}
        {far ? null : <ErrorPort id={id} block={block} spec={spec} wired={wired} />}
      </div>
      {far ? null : <Ports id={id} block={block} spec={spec} wired={wired} />}
    </>
  )
})

/** Collapses it to its head, and back. */
function Fold({ id, name, collapsed }: { id: string; name: string; collapsed: boolean }): ReactElement {
  return (
    <button
      type="button"
      className="container__fold nodrag nopan"
      aria-expanded={!collapsed}
      aria-label={`${collapsed ? 'Expand' : 'Collapse'} ${name}`}
      title={collapsed ? 'Expand' : 'Collapse'}
      data-testid={`fold-${id}`}
      onClick={(event) => {
        event.stopPropagation()
        setCollapsed(
          docStore.getState().doc.blocks[id] ? docStore.getState().doc : runStore.getState().doc!,
          id,
          !collapsed,
        )
      }}
    >
      <Icon name={collapsed ? 'chevron' : 'down'} size={12} />
    </button>
  )
}

/** Of the text of an item, in a header. */
const ITEM_W = 96

/** Can the sentence be read in a header, or enough of it? In pixels of the canvas, by the number of letters. */
function hasRoom(width: number, name: string, letters: number, stepper: boolean, failed: number): boolean {
  const room = width - 96 - name.length * 7.6 - (stepper ? 112 : 0) - (failed ? 76 : 0)
  return room >= Math.min(letters * 6.6, 132)
}

/** Iterations that the menu lists at once: those around the one that is looked at. */
const LISTED = 9

/** `textOf`: what an iteration is about. `roomy`: there is room for it in the header. */
function IterationStepper({
  id,
  name,
  rounds,
  kind,
  textOf,
  roomy,
}: {
  id: string
  name: string
  rounds: Rounds
  kind: string
  textOf: (index: number) => string
  roomy: boolean
}): ReactElement {
  const [menu, setMenu] = useState<{ x: number; y: number } | null>(null)
  const [typing, setTyping] = useState(false)
  const goTo = (text: string): void => {
    setTyping(false)
    const to = Number.parseInt(text, 10)
    if (to >= 1) setIter(id, Math.min(to, opened) - 1)
  }
  const { index, count, opened, scopes } = rounds
  const text = textOf(index)
  const word = kind === 'parallel' ? 'branch' : 'iteration'
  const failed = firstFailed(scopes)
  const slow = slowest(scopes, serverNow())
  const from = Math.max(0, Math.min(index - Math.floor(LISTED / 2), opened - LISTED))
  const near = Array.from({ length: Math.min(LISTED, opened) }, (_, i) => from + i)
  const entries: MenuEntry[] = [
    { label: `Latest ${word}`, icon: 'last', onSelect: () => setIter(id, null) },
    { label: `First ${word}`, icon: 'first', onSelect: () => setIter(id, 0) },
    {
      label: `First failed ${word}${failed >= 0 ? ` (${failed + 1})` : ''}`,
      icon: 'failed',
      why: failed < 0 ? 'None failed.' : null,
      onSelect: () => setIter(id, failed),
    },
    {
      label: `Slowest ${word}${slow >= 0 ? ` (${slow + 1})` : ''}`,
      icon: 'wait',
      why: slow < 0 ? 'None has started.' : null,
      onSelect: () => setIter(id, slow),
    },
    'line',
    ...near.map(
      (at): MenuEntry => ({
        label: [`${capital(word)} ${at + 1}`, textOf(at)].filter(Boolean).join(': '),
        icon: glyphOf(scopes[at]?.status ?? 'queued') ?? 'queued',
        onSelect: () => setIter(id, at),
      }),
    ),
    ...(opened > LISTED
      ? ['line' as const, { label: `Go to ${word}`, icon: 'search' as const, onSelect: () => setTyping(true) }]
      : []),
  ]
  return (
    <div
      className="stepper nodrag nopan"
      role="group"
      aria-label={`${word} of ${name}`}
      onClick={(event) => event.stopPropagation()}
      onDoubleClick={(event) => event.stopPropagation()}
    >
      {text && roomy ? (
        <span className="stepper__item" data-testid={`iter-${id}-item`} title={text}>
          {text}
        </span>
      ) : null}
      {failed >= 0 ? (
        <button
          type="button"
          className="stepper__failed"
          title={`First failed ${word}: ${failed + 1}`}
          data-testid={`iter-${id}-failed`}
          onClick={() => setIter(id, failed)}
        >
          <Icon name="failed" size={14} />
          {rounds.failed ? rounds.failed : null}
          {rounds.failed ? <span>failed</span> : null}
        </button>
      ) : null}
      <button
        type="button"
        className="stepper__turn"
        data-testid={`iter-${id}-prev`}
        aria-label={`Previous ${word}`}
        title={index > 0 ? `Previous ${word}` : `This is the first ${word}`}
        aria-disabled={index <= 0 || undefined}
        onClick={() => index > 0 && stepIteration(id, -1)}
      >
        <Icon name="back" size={14} />
      </button>
      {typing ? (
        <input
          type="text"
          inputMode="numeric"
          className="stepper__number"
          aria-label={`Number of the ${word}`}
          defaultValue={index + 1}
          autoFocus
          onFocus={(event) => event.currentTarget.select()}
          onBlur={(event) => goTo(event.currentTarget.value)}
          onKeyDown={(event) => {
            event.stopPropagation()
            if (event.key === 'Enter') goTo(event.currentTarget.value)
            else if (event.key === 'Escape') {
              event.currentTarget.value = ''
              setTyping(false)
            }
          }}
        />
      ) : null}
      <button
        type="button"
        hidden={typing}
        className="stepper__count"
        data-testid={`iter-${id}-count`}
        aria-haspopup="menu"
        aria-label={`${word} ${index + 1} / ${count}${text ? `: ${text}` : ''}`}
        title={text || undefined}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          setMenu({ x: box.left, y: box.bottom + 4 })
        }}
      >
        #{index + 1}
      </button>
      <button
        type="button"
        className="stepper__turn"
        data-testid={`iter-${id}-next`}
        aria-label={`Next ${word}`}
        title={
          index < opened - 1
            ? `Next ${word}`
            : opened < count
              ? `${capital(word)} ${opened + 1} has not started`
              : `This is the last ${word}`
        }
        aria-disabled={index >= opened - 1 || undefined}
        onClick={() => index < opened - 1 && stepIteration(id, 1)}
      >
        <Icon name="chevron" size={14} />
      </button>
      {menu ? <Menu entries={entries} at={menu} label={`Choose ${word}`} onClose={() => setMenu(null)} /> : null}
    </div>
  )
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** From this many iterations on they share one bar. */
const PARTS_FROM = 13
const EACH_W = 21
const SHARED_W = 96
const COUNTED_W = 56

const countsW = ({ count }: Rounds): number => (count < PARTS_FROM ? count * EACH_W : SHARED_W) + COUNTED_W

/** One bar for each iteration, or one in parts: which have ended well, failed, are running. */
function Counts({ rounds }: { rounds: Rounds }): ReactElement {
  const { count, closed, failed, running, scopes } = rounds
  const part = (n: number): string => `${(Math.max(0, n) / Math.max(count, 1)) * 100}%`
  const label = `${closed - failed} done, ${failed} failed, ${running} running of ${count}`
  return (
    <>
      <span
        className="counts"
        role="img"
        aria-label={label}
        title={label}
        data-shared={count >= PARTS_FROM || undefined}
      >
        {count < PARTS_FROM ? (
          Array.from({ length: count }, (_, at) => <i key={at} data-tone={SCOPE_TONES[scopes[at]?.status ?? '']} />)
        ) : (
          <>
            <i data-tone="ok" style={{ width: part(closed - failed) }} />
            <i data-tone="err" style={{ width: part(failed) }} />
            <i data-tone="run" style={{ width: part(running) }} />
          </>
        )}
      </span>
      <span className="counts__text">
        {closed} of {count}
      </span>
    </>
  )
}

const SCOPE_TONES: Readonly<Record<string, string>> = { running: 'run', succeeded: 'ok', failed: 'err' }

/** What is inside must stay inside. */
function leastSize(id: string): [number, number] {
  const { doc } = docStore.getState()
  const specs = specsOf()
  let [w, h] = CONTAINER_MIN
  for (const child of indexOf(doc).children.get(id) ?? []) {
    const block = doc.blocks[child]!
    const [cw, ch] = sizeOf(block, specs.get(block.type))
    w = Math.max(w, (block.at?.[0] ?? 0) + cw + 16)
    h = Math.max(h, (block.at?.[1] ?? 0) + ch + 16)
  }
  return [w, h]
}
