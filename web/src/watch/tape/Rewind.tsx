// A rewind beside the Tape: the lanes with the turn at the playhead below them, and the panel with what was before, what is reused
// unpaid, and Continue. Nothing is called before; Continue makes a run of its own, and shows it beside this one.

import { useEffect, useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { useShallow } from 'zustand/react/shallow'
import type { ForkPreview, Json } from '../../api/schemas'
import { nameOf } from '../../document/document'
import { printJson } from '../../forms/json/print'
import { api } from '../../net/api'
import { isObject } from '../../net/json'
import { usedText } from '../../run'
import { futuresStore, NO_FUTURES, type Futures } from '../../state/futures'
import { runStore, seek } from '../../state/live'
import { netStore } from '../../state/net'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { navigate } from '../../ui/navigation'
import { useReadOnly } from '../../ui/rights'
import { exactTime } from '../../ui/time'
import { messageOf } from '../../ui/words'
import { useNodeDetail } from '../run/useNodeDetail'
import { changedWords, futuresOf, partedOf, valuesOf } from './differing'
import { FuturesTable } from './FuturesTable'
import Lanes from './Lanes'
import type { Axis } from './layout'
import * as rewind from './rewind'
import { RewindLine } from './RewindLine'
import { closeRewind, NO_CHANGES, rewindStore, type Changes } from './rewindStore'
import { UnfoldedTurn } from './Turn'

export default function Rewind({ axis, height }: { axis: Axis; height: number | null }): ReactElement {
  const run = useStore(runStore, (s) => s.id)!
  const view = useStore(runStore, (s) => s.view)
  const block = useStore(uiStore, (s) => (s.selection.blocks.length === 1 ? s.selection.blocks[0]! : null))
  const moment = useMemo(() => rewind.momentOf(view, block), [view, block])
  const changes = useStore(
    rewindStore,
    useShallow(({ params, steps }) => ({ params, steps })),
  )
  const words = useWords(run, moment)
  const parts = useMemo(() => (moment ? rewind.partsOf(moment, words, changes) : []), [moment, words, changes])
  const { preview, error } = usePreview(run, moment && rewind.pointOf(moment, changes))
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({})
  const place = moment ? `${moment.node.key} ${moment.turn?.n ?? 0}` : ''
  // The changes are of one turn.
  useEffect(() => {
    if (rewindStore.getState().place === place) return
    rewindStore.setState({ ...NO_CHANGES, place })
    setWrong({})
  }, [place])
  usePainted(moment, parts, changes, preview)
  const onWrong = (id: string, why: string | null): void =>
    setWrong(({ [id]: _, ...rest }) => (why === null ? rest : { ...rest, [id]: why }))
  const reply = moment?.turn?.step.n
  const changed = new Set(Object.keys(changes.steps).map(Number))
  /** A later step of the moment, which another result of an earlier one makes anew. The reply itself is shown until Continue. */
  const again = (n: number): boolean => {
    const step = moment!.node.steps.find((each) => each.n === n)
    return !!preview && changed.size > 0 && !changed.has(n) && n !== reply && !!step && step.from > preview.seq
  }
  return (
    <div className="futures" data-testid="rewinding">
      <div className="rewind__tape">
        {height === null ? null : <Lanes axis={axis} height={height} />}
        {moment?.turns.length ? (
          <Turns moment={moment} results={parts.some((part) => part.n !== null && part.put)} />
        ) : null}
        {moment ? (
          <UnfoldedTurn key={place} parts={parts} changes={changes} again={again} onWrong={onWrong} />
        ) : (
          <p className="rewind__none quiet">Drag the Tape to a moment inside the run of an agent.</p>
        )}
      </div>
      <section className="futures__panel rewind" aria-label="Two futures">
        <div className="futures__bar">
          <h2>Two futures</h2>
          <Button kind="bare" onClick={closeRewind}>
            Leave
          </Button>
        </div>
        {height === null ? <RewindLine /> : null}
        {moment ? <Facts preview={preview} /> : <p className="quiet">There is nothing to change at this moment.</p>}
        {moment && !preview && !error ? (
          <p className="quiet" role="status">
            Loading what Continue would do
          </p>
        ) : null}
        <Continue run={run} moment={moment} changes={changes} trouble={error} wrong={Object.values(wrong)[0] ?? null} />
      </section>
    </div>
  )
}

/** One turn earlier or later. */
function Turns({ moment: { node, turn }, results }: { moment: rewind.Moment; results: boolean }): ReactElement {
  const head = useStore(runStore, (s) => s.head)
  const all = useMemo(() => rewind.turnsOf(head, node.key), [head, node.key])
  const n = turn!.n
  const go = (to: number): void => seek(rewind.endOf(head.nodes.get(node.key)!, all[to - 1]!))
  return (
    <p className="rewind__turns">
      <Button kind="bare" icon="back" iconOnly why={n > 1 ? null : 'This is the first turn'} onClick={() => go(n - 1)}>
        Turn before
      </Button>
      <b>{`Turn ${n} of ${Math.max(n, all.length)}`}</b>
      <Button
        kind="bare"
        icon="chevron"
        iconOnly
        why={n < all.length ? null : 'This is the last turn'}
        onClick={() => go(n + 1)}
      >
        Next turn
      </Button>
      <span className="quiet">
        Change a word{results ? ', a result or an answer' : ''}. Continue begins a run of its own.
      </span>
    </p>
  )
}

/** The instructions and the prompt, as the model read them. */
function useWords(run: string, moment: rewind.Moment | null): Record<string, string> {
  const { detail } = useNodeDetail(run, moment?.node, null)
  return useMemo(() => {
    const input = isObject(detail?.input) ? detail.input : {}
    return Object.fromEntries(
      ['system', 'prompt'].flatMap((name): [string, string][] =>
        typeof input[name] === 'string' ? [[name, input[name]]] : [],
      ),
    )
  }, [detail])
}

/** What Continue would do, as the server knows it. It is asked again when the connection is back. */
function usePreview(
  run: string,
  at: ReturnType<typeof rewind.pointOf> | null,
): { preview: ForkPreview | null; error: string } {
  const [state, setState] = useState<{ preview: ForkPreview | null; error: string }>({ preview: null, error: '' })
  const offline = useStore(netStore, (s) => s.mode === 'offline')
  useEffect(() => {
    if (!at) return
    let current = true
    api
      .forkPreview(run, at)
      .then((preview) => current && setState({ preview, error: '' }))
      .catch((error: unknown) => current && setState({ preview: null, error: messageOf(error) }))
    return () => {
      current = false
    }
  }, [run, JSON.stringify(at), offline])
  return state
}

/** On the canvas: flax is what ran after that moment, plum what is changed; and the line above it. */
function usePainted(
  moment: rewind.Moment | null,
  parts: readonly rewind.Part[],
  changes: Changes,
  preview: ForkPreview | null,
): void {
  const seq = preview?.seq ?? null
  const head = useStore(runStore, (s) => s.head)
  const doc = useStore(runStore, (s) => s.doc)
  const changed = useMemo(() => (moment ? changedPart(moment, parts, changes) : null), [moment, parts, changes])
  useEffect(() => {
    if (!doc || seq === null) return
    const parted = partedOf(doc, head, runStore.getState().timeline.seek(seq))
    futuresStore.setState({ ...parted, values: valuesOf(parted.blocks, head, null, ['', '']), changed })
  }, [doc, head, seq, changed])
  useEffect(() => {
    const at = moment?.node.steps.find((step) => step.n === (moment.turn?.step.n ?? step.n))
    rewindStore.setState({
      moment:
        moment && at
          ? `${rewind.momentText(moment, doc ? nameOf(doc, moment.node.block) : moment.node.block)}, ${exactTime(at.startedAt)}`
          : '',
      text: preview ? rewind.callsText(preview) : '',
    })
  }, [moment, preview, doc])
  useEffect(() => () => futuresStore.setState(NO_FUTURES), [])
}

function changedPart({ node }: rewind.Moment, parts: readonly rewind.Part[], changes: Changes): Futures['changed'] {
  const text = (value: Json): string => (typeof value === 'string' ? value : printJson(value))
  for (const part of parts) {
    const [was, now] = [text(part.value), text(rewind.valueNow(part, changes))]
    if (was !== now) return { block: node.block, label: `${part.label}, changed here`, parts: changedWords(was, now) }
  }
  return { block: node.block, label: '', parts: [] }
}

/** What was before, and what of it is reused. */
function Facts({ preview }: { preview: ForkPreview | null }): ReactElement | null {
  const head = useStore(runStore, (s) => s.head)
  const doc = useStore(runStore, (s) => s.doc)
  if (!preview) return null
  const now = runStore.getState().timeline.seek(preview.seq)
  const rows = futuresOf(head, now, [0, 0], 0, doc).filter(([name]) => ['Turns', 'Tokens', 'Cost'].includes(name))
  const calls = preview.calls + preview.again.filter((call) => call.n > 0).length
  const used = usedText([{ usage: preview.usage, cost: preview.cost }])
  return (
    <>
      <FuturesTable rows={[...rows, ['Reused', '', `${preview.calls} of ${calls}`]]} now="So far" />
      <p className="quiet">
        {preview.calls === 1 ? 'One call is' : `${preview.calls} calls are`} reused and not paid again
        {used ? `: ${used}` : ''}.
      </p>
    </>
  )
}

function Continue({
  run,
  moment,
  changes,
  trouble,
  wrong,
}: {
  run: string
  moment: rewind.Moment | null
  changes: Changes
  trouble: string
  wrong: string | null
}): ReactElement {
  const mayNot = useReadOnly()
  const offline = useStore(netStore, (s) => s.mode === 'offline')
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState('')
  useEffect(() => setRefused(''), [changes, moment?.node.key, moment?.turn?.n])
  const go = async (): Promise<void> => {
    setBusy(true)
    try {
      const made = await rewind.begin(run, moment!, changes)
      closeRewind()
      rewindStore.setState({ continued: true })
      navigate(`/runs/${made.run}?with=${run}&block=${encodeURIComponent(moment!.node.block)}`)
    } catch (error) {
      setRefused(messageOf(error))
      setBusy(false)
    }
  }
  const why =
    mayNot ??
    (offline
      ? 'The server cannot be reached'
      : busy
        ? 'Starting'
        : moment
          ? wrong
          : 'There is nothing to change at this moment')
  const said = wrong ?? (refused || trouble)
  return (
    <>
      {said ? (
        <p className="tape__card-error" role="alert">
          {said}
        </p>
      ) : null}
      <Button
        className="rewind__go"
        icon="play"
        changes
        why={why}
        data-testid="rewind-continue"
        onClick={() => void go()}
      >
        Continue
      </Button>
    </>
  )
}
