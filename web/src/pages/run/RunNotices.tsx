// What a run needs attention for, above the canvas: its error with the way to it, and what it waits for, to be answered here.

import { useEffect, useState, type ReactElement } from 'react'
import { keyText } from '../../keys'
import { api } from '../../net/api'
import type { Json, WaitView } from '../../net/types'
import { runStore } from '../../state/live'
import { firstError, isEnded, type OpenWait } from '../../state/run'
import { nameOf } from '../../state/document'
import { shallow, useSelect } from '../../state/store'
import { goToFirstError, selectNode } from '../../panels/trace/jump'
import { placeOf } from '../../panels/events/describe'
import { durationText, timeOfDay } from '../../panels/tape/time'
import { useClock } from '../../panels/tape/useClock'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon } from '../../ui/icons'
import { toast } from '../../ui/Toast'
import { AnswerForm, Outcome } from '../AnswerForm'
import { isForPeople, titleOf } from '../answer'
import { messageOf } from '../parts'
import { useWhyNot } from './useWhyNot'

const SHOWN = 3

export function RunNotices(): ReactElement | null {
  const error = useSelect(runStore, (s) => s.view.error)
  const failed = useSelect(runStore, (s) => firstError(s.view))
  const failing = useSelect(runStore, (s) => s.view.status === 'failed' || s.view.failures.length > 0)
  const doc = useSelect(runStore, (s) => s.doc)
  const waits = useSelect(runStore, (s) => [...s.view.waits.values()], shallow)
  const why = useWhyNot()
  const views = useWaitViews()
  const [all, setAll] = useState(false)
  const [asked, setAsked] = useState<{ wait: WaitView; done: WaitView | null; mine: boolean } | null>(null)

  const where = failed ? placeOf(failed.path, doc) : ''
  const message = failed?.error?.message ?? error?.message
  const sorted = [...waits].sort((a, b) => Number(b.kind === 'approval' || b.kind === 'form') - Number(a.kind === 'approval' || a.kind === 'form') || a.openedAt - b.openedAt)
  const shown = all ? sorted : sorted.slice(0, SHOWN)
  return (
    <section className="runnotes" aria-label="Needs attention">
      {failing && message ? (
        <div className="runnote" data-tone="err" role="alert" data-testid="run-error">
          <Icon name="failed" />
          <p className="runnote__text">
            <b>{failed ? `${doc ? nameOf(doc, failed.block) : failed.block} failed${where ? ` in ${where}` : ''}` : 'The run failed'}</b>: {message}
            {error?.hint ?? failed?.error?.hint ? <span className="quiet"> {error?.hint ?? failed?.error?.hint}</span> : null}
          </p>
          {failed ? <Button keys={keyText('firstError')} onClick={() => goToFirstError()}>Jump to first error</Button> : null}
        </div>
      ) : null}
      {shown.map((wait) => (
        <WaitNote
          key={wait.key} wait={wait} view={views.get(wait.key)} name={doc ? nameOf(doc, wait.block) : wait.block} where={placeOf(pathOf(wait.key), doc)} why={why}
          onAnswer={(view) => setAsked({ wait: view, done: null, mine: false })}
        />
      ))}
      {sorted.length > shown.length ? <div className="runnote" data-tone="wait"><Button kind="bare" onClick={() => setAll(true)}>and {sorted.length - shown.length} more waits</Button></div> : null}
      <Dialog title={asked ? titleOf(asked.wait) : ''} open={asked !== null} onClose={() => setAsked(null)}>
        {asked?.done ? (
          <>{asked.mine ? null : <p className="notice" data-tone="wait">Somebody was first. This is what counts:</p>}<Outcome wait={asked.done} /></>
        ) : asked ? (
          <AnswerForm
            wait={asked.wait} why={why}
            onDone={(done, mine) => (mine ? setAsked(null) : setAsked({ ...asked, done, mine }))}
          />
        ) : null}
      </Dialog>
    </section>
  )
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
  const left = wait.dueAt === null ? null : Math.max(0, wait.dueAt - now)
  const asks = view ? titleOf(view) : wait.title
  const rest = left === null ? '' : wait.kind === 'timer' ? ` until ${timeOfDay(wait.dueAt!)}, in ${leftText(left)}` : `, open for another ${leftText(left)}`
  return (
    <div className="runnote" data-tone="wait" data-testid={`runwait-${wait.key}`}>
      <Icon name="waiting" />
      <p className="runnote__text">
        <button type="button" className="runnote__name" onClick={() => selectNode({ block: wait.block, path: pathOf(wait.key) })}>{name}</button>
        {where ? ` in ${where}` : ''} {SENTENCE[wait.kind] ?? 'waits'}{view?.kind === 'signal' && view.name ? ` ${view.name}` : ''}{rest}
        {asks && asks !== name && wait.kind !== 'timer' ? <span className="quiet">: {asks}</span> : null}
      </p>
      {view && isForPeople(view) && view.link ? <Button kind="primary" why={why} onClick={() => onAnswer(view)}>Answer</Button> : null}
      {view && view.kind === 'signal' && view.name ? <SendSignal view={view} why={why} /> : null}
      {view && view.link && wait.kind !== 'timer' ? <CopyLink link={view.link} /> : null}
    </div>
  )
}

function CopyLink({ link }: { link: string }): ReactElement {
  const copy = async (): Promise<void> => {
    const whole = new URL(link, location.origin).href
    try {
      await navigator.clipboard.writeText(whole)
      toast('Copied the link', 'ok')
    } catch {
      toast(whole)
    }
  }
  return <Button icon="link" onClick={() => void copy()}>Copy link</Button>
}

function SendSignal({ view, why }: { view: WaitView; why: string | null }): ReactElement {
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('{}')
  const [trouble, setTrouble] = useState('')
  const send = async (): Promise<void> => {
    let payload: Json
    try {
      payload = JSON.parse(text.trim() || 'null') as Json
    } catch {
      return setTrouble('This is not valid JSON.')
    }
    try {
      await api.signal(view.run, view.name!, payload, view.correlation ?? undefined)
      setOpen(false)
    } catch (error) {
      setTrouble(messageOf(error))
    }
  }
  return (
    <>
      <Button why={why} onClick={() => setOpen(true)}>Send the signal</Button>
      <Dialog title={`Send ${view.name}`} open={open} onClose={() => setOpen(false)} foot={<Button kind="primary" onClick={() => void send()}>Send</Button>}>
        <label htmlFor="signal-payload">Payload, as JSON</label>
        <textarea id="signal-payload" className="mono" rows={5} spellCheck={false} value={text} aria-invalid={trouble ? true : undefined} onChange={(event) => setText(event.target.value)} />
        {trouble ? <p className="notice" data-tone="err" role="alert">{trouble}</p> : null}
      </Dialog>
    </>
  )
}

/** The open waits of the run by node key, with links and forms: asked again whenever the journal opens or closes one. */
function useWaitViews(): ReadonlyMap<string, WaitView> {
  const id = useSelect(runStore, (s) => s.id)
  const keys = useSelect(runStore, (s) => [...s.head.waits].map(([key, wait]) => `${key} ${wait.openedAt}`).join('\n'))
  const over = useSelect(runStore, (s) => isEnded(s.head.status))
  const [views, setViews] = useState<ReadonlyMap<string, WaitView>>(new Map())
  useEffect(() => {
    if (id === null || over || !keys) return setViews(new Map())
    let current = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = (): void => {
      api.waits('pending', id).then(
        (waits) => current && setViews(new Map(waits.map((wait) => [wait.key, wait]))),
        () => (timer = setTimeout(load, 3000)),
      )
    }
    load()
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [id, keys, over])
  return views
}

/** Whole seconds: they are counted down. */
const leftText = (ms: number): string => (ms < 60_000 ? `${Math.ceil(ms / 1000)} s` : durationText(Math.ceil(ms / 1000) * 1000))

const pathOf = (key: string): string => (key.includes('@') ? key.slice(key.indexOf('@') + 1) : '')

const SENTENCE: Record<string, string> = {
  approval: 'waits for a decision', form: 'waits for an answer', timer: 'sleeps', signal: 'waits for the signal', webhook: 'waits for a call to its link', child: 'waits for the run it started',
}
