// What a run needs attention for, above the canvas: its error with the way to it, and what it waits for, to be answered here.

import { useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react'
import { useShallow } from 'zustand/react/shallow'
import { useStore } from 'zustand'
import { keyText } from '../../keys'
import type { WaitView } from '../../api/types'
import { runStore } from '../../state/live'
import { firstError, isEnded, type OpenWait } from '../../run'
import { nameOf } from '../../document/document'
import { goToFirstError, selectNode } from '../../actions/jump'
import { rerunStore } from '../../actions/start'
import { placeOf } from '../../run'
import { dateTime, roughly, timeOfDay } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { CopyLink, SendSignal } from '../WaitActions'
import { isForPeople } from '../../edit/shell/waiting'
import { titleOf } from '../answer'
import { Link } from '../../ui/navigation'
import { useReadOnly } from '../../ui/rights'
import { sentence } from '../../ui/words'
import { useWhyNot } from '../../watch/run/useWhyNot'
import { AnswerDialog } from './AnswerDialog'
import { useHeldUp } from './useHeldUp'
import { useWaitViews } from './useWaitViews'
import './notices.css'

const SHOWN = 3

/** `editing`: its error, and what people are asked; the editor shows other waits on the cards. `lane`: its rows have the
 * waits of calls. */
export function RunNotices({
  editing = false,
  lane = false,
}: {
  editing?: boolean
  lane?: boolean
}): ReactElement | null {
  const error = useStore(runStore, (s) => s.view.error)
  const failed = useStore(runStore, (s) => firstError(s.view))
  const failing = useStore(runStore, (s) => s.view.status === 'failed' || s.view.failures.length > 0)
  const doc = useStore(runStore, (s) => s.doc)
  const waits = useStore(
    runStore,
    useShallow((s) =>
      [...s.view.waits.values()].filter(
        (wait) => (!lane || wait.step === undefined) && (!editing || isForPeople(wait)),
      ),
    ),
  )
  const why = useWhyNot()
  const mayNot = useReadOnly()
  const ended = useStore(runStore, (s) => isEnded(s.head.status))
  const views = useWaitViews()
  const [all, setAll] = useState(false)
  const [asked, setAsked] = useState<WaitView | null>(null)
  const answered = useRef(false)
  useEffect(() => {
    answered.current ||= asked !== null
    if (answered.current && !asked) keepFocus()
  }, [asked])

  const where = failed ? placeOf(failed.path, doc) : ''
  const message = failed?.error?.message ?? error?.message
  const sorted = [...waits].sort((a, b) => Number(isForPeople(b)) - Number(isForPeople(a)) || a.openedAt - b.openedAt)
  const shown = all ? sorted : sorted.slice(0, SHOWN)
  return (
    <section className="runnotes" aria-label="Needs attention">
      <HeldUpNote />
      {failing && message ? (
        <Failure>
          <Icon name="failed" />
          <p className="runnote__text">
            <b>
              {failed
                ? `${doc ? nameOf(doc, failed.block) : failed.block} failed${where ? ` in ${where}` : ''}`
                : 'The run failed'}
            </b>
            : {message}
            {(error?.hint ?? failed?.error?.hint) ? (
              <span className="quiet">. {sentence(error?.hint ?? failed?.error?.hint ?? '')}</span>
            ) : null}
          </p>
          {failed && editing && ended ? (
            <Button
              kind="primary"
              icon="redo"
              why={mayNot}
              title="Keeps what is unchanged, and runs the rest with the draft as it is now"
              onClick={() => rerunStore.setState({ from: failed.block, draft: true })}
            >
              Continue
            </Button>
          ) : null}
          {failed ? (
            <Button keys={keyText('firstError')} onClick={() => goToFirstError()}>
              {editing ? 'Show' : 'Jump to first error'}
            </Button>
          ) : null}
        </Failure>
      ) : null}
      {shown.map((wait) => (
        <WaitNote
          key={wait.id}
          wait={wait}
          view={views.get(wait.id)}
          name={doc ? nameOf(doc, wait.block) : wait.block}
          where={placeOf(pathOf(wait.key), doc)}
          why={why}
          onAnswer={setAsked}
        />
      ))}
      {sorted.length > shown.length ? (
        <div className="runnote" data-tone="wait">
          <Button kind="bare" onClick={() => setAll(true)}>
            and {sorted.length - shown.length} more waits
          </Button>
        </div>
      ) : null}
      <ChildWaits why={why} onAnswer={setAsked} />
      {asked ? <AnswerDialog key={asked.id} wait={asked} onClose={() => setAsked(null)} /> : null}
    </section>
  )
}

/** The process that executes the run stopped responding, or no process has what the run needs. */
function HeldUpNote(): ReactElement | null {
  const { since, lacks } = useHeldUp()
  const now = useClock(1000)
  if (lacks)
    return (
      <div className="runnote" data-tone="wait" role="status" data-testid="run-lacks">
        <Icon name="warning" />
        <p className="runnote__text" data-whole>
          The run waits for {lacks}.
          <span className="quiet">
            {' '}
            It continues when a process that has it starts. Or move the run to a version that needs something else.
          </span>
        </p>
      </div>
    )
  if (since === null) return null
  return (
    <div className="runnote" data-tone="wait" role="status" data-testid="run-stale">
      <Icon name="warning" />
      <p className="runnote__text" title={dateTime(since)}>
        Worker stopped responding, {roughly(now - since)} ago. Another one will continue.
      </p>
    </div>
  )
}

/** It goes when the run is continued, with the button that did that. */
function Failure({ children }: { children: ReactNode }): ReactElement {
  useEffect(() => keepFocus, [])
  return (
    <div className="runnote" data-tone="err" role="alert" data-testid="run-error">
      {children}
    </div>
  )
}

/** The button that opened an answer goes with its question: the canvas has the keyboard then. */
function keepFocus(): void {
  if (document.activeElement === document.body)
    document.querySelector<HTMLElement>('.canvas')?.focus({ preventScroll: true })
}

interface WaitNoteProps {
  wait: OpenWait
  view: WaitView | undefined
  name: string
  where: string
  why: string | null
  onAnswer: (view: WaitView) => void
}

function WaitNote({ wait, view, name, where, why, onAnswer }: WaitNoteProps): ReactElement {
  const now = useClock(1000)
  const answering = useRef(false)
  useEffect(() => () => (answering.current ? keepFocus() : undefined), [])
  const left = wait.dueAt === null ? null : Math.max(0, wait.dueAt - now)
  const asks = view ? titleOf(view) : wait.title
  const rest =
    left === null
      ? ''
      : wait.kind === 'timer'
        ? ` until ${timeOfDay(wait.dueAt!)}, in ${roughly(left)}`
        : `, expires in ${roughly(left)}`
  return (
    <div className="runnote" data-tone="wait" data-testid={`runwait-${wait.key}`}>
      <Icon name="waiting" />
      <p className="runnote__text">
        <button
          type="button"
          className="runnote__name"
          onClick={() => selectNode({ block: wait.block, path: pathOf(wait.key) })}
        >
          {name}
        </button>
        {where ? ` in ${where}` : ''} {SENTENCE[wait.kind] ?? 'is waiting'}
        {view?.kind === 'signal' && view.name ? ` ${view.name}` : ''}
        {rest}
        {asks && asks !== name && wait.kind !== 'timer' ? <span className="quiet">: {asks}</span> : null}
      </p>
      {view && isForPeople(view) && view.link ? (
        <Button kind="primary" why={why} onClick={() => ((answering.current = true), onAnswer(view))}>
          Answer
        </Button>
      ) : null}
      {view && view.kind === 'signal' && view.name ? <SendSignal view={view} why={why} /> : null}
      {view?.link && wait.kind !== 'timer' ? (
        <CopyLink link={view.link} what={wait.kind === 'webhook' ? 'URL' : 'link'} />
      ) : null}
      {wait.kind === 'child' ? <ChildLink wait={wait} /> : null}
    </div>
  )
}

/** To the run that a block waits for. */
function ChildLink({ wait }: { wait: OpenWait }): ReactElement | null {
  const known = useStore(runStore, (s) => s.meta?.children?.find((each) => each.key === wait.key))
  const child = wait.child ?? known?.run
  return child ? (
    <Link className="button" to={`/runs/${child}`}>
      Open run
    </Link>
  ) : null
}

/** What runs that this one started wait for, to be answered here as well. */
function ChildWaits({ why, onAnswer }: { why: string | null; onAnswer: (view: WaitView) => void }): ReactElement {
  const waits = useStore(runStore, (s) => s.meta?.child_waits)
  const people = (waits ?? []).filter((wait) => wait.status === 'pending' && isForPeople(wait))
  return (
    <>
      {people.slice(0, SHOWN).map((wait) => (
        <div key={`${wait.run} ${wait.id}`} className="runnote" data-tone="wait" data-testid={`childwait-${wait.id}`}>
          <Icon name="waiting" />
          <p className="runnote__text">
            <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{wait.workflow}</Link>, a child run,{' '}
            {SENTENCE[wait.kind]}
            <span className="quiet">: {titleOf(wait)}</span>
          </p>
          {wait.link ? (
            <Button kind="primary" why={why} onClick={() => onAnswer(wait)}>
              Answer
            </Button>
          ) : null}
        </div>
      ))}
      {people.length > SHOWN ? (
        <div className="runnote" data-tone="wait">
          <Link to="/approvals">and {people.length - SHOWN} more in child runs</Link>
        </div>
      ) : null}
    </>
  )
}

const pathOf = (key: string): string => (key.includes('@') ? key.slice(key.indexOf('@') + 1) : '')

const SENTENCE: Record<string, string> = {
  approval: 'is waiting for approval',
  form: 'is waiting for an answer',
  timer: 'is waiting',
  signal: 'is waiting for the signal',
  webhook: 'is waiting for a callback',
  child: 'is waiting for another run',
  attention: 'needs attention',
}
