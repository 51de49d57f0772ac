// Publishing: the draft becomes a version, which does not change. What stops by it is ticked first.

import { lazy, Suspense, useEffect, useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { goToFinding, placeOfFinding } from '../../actions/findings'
import { api, ApiError } from '../../net/api'
import { serverNow } from '../../net/clock'
import { repair } from '../../net/repair'
import { triggers } from '../../net/triggers'
import { diffDocuments, isSame } from '../../document/diff'
import { isTrigger, UNTITLED, type Specs } from '../../document/document'
import type { Diagnostic, DraftVersion } from '../../api/schemas'
import type { Document } from '../../api/types'
import { backtestStore } from '../../state/backtest'
import { dispatch, docStore, flush, specsOf } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { roughly } from '../../ui/time'
import { toast } from '../../ui/Toast'
import { useData, type Loaded } from '../../ui/useData'
import { useLater } from '../../ui/useLater'
import { messageOf } from '../../ui/words'
import { impactOf, withoutPins, type Active, type Effect } from './impact'
import { ChangeSentence, Columns } from './PublishImpact'
import './publish.css'

const PublishReplay = lazy(() => import('./PublishReplay'))

/** Another version was published while the dialog was open. */
const MET = 'Another version was published meanwhile, so this one was not. Look again at what changes and what stops.'

interface Problems {
  text: string
  list: readonly Diagnostic[]
}

export default function PublishDialog(): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  const base = useStore(docStore, (s) => (s.baseName === null ? null : { name: s.baseName, version: s.baseVersion }))
  const own = doc.name ?? base?.name ?? ''
  const [typed, setTyped] = useState(isUntitled(own) ? '' : own)
  const [problems, setProblems] = useState<Problems | null>(null)
  const [busy, setBusy] = useState(false)
  const [activates, setActivates] = useState(false)
  const [ticked, setTicked] = useState<readonly string[]>([])
  const triggersOff = useStore(docStore, (s) => isIncomplete(s.diagnostics) && startsByItself(s.doc, specsOf()))
  const name = typed.trim()
  const found = useActive(name)
  const active = found.value?.active ?? null
  const impact = impactOf(doc, active, base?.name === name ? base.version : null, specsOf())
  const ticks = impact.stops.filter(({ id }) => !ticked.includes(`${name} ${id}`))
  const why = busy ? 'Publishing' : (nameFault(name) ?? notKnown(found, name) ?? toTick(ticks))
  const known = notKnown(found, name) === null
  const again = useEqual(name, doc, active, found.value?.next ?? null)
  const next = again ?? found.value?.next ?? null
  const tested = useStore(backtestStore, (s) => s.runs.length > 0) && name === own
  const close = (): void => uiStore.setState({ overlay: null })
  // Enter right after the name: it is published once it is known what that replaces, if nothing is to be ticked.
  const [waits, setWaits] = useState(false)
  const looksUp = !busy && nameFault(name) === null && !known && !found.error
  useEffect(() => {
    if (!waits || looksUp) return
    setWaits(false)
    void publish()
  }, [waits, looksUp])
  const publish = async (): Promise<void> => {
    if (looksUp) setWaits(true)
    if (why !== null) return
    setBusy(true)
    setProblems(null)
    try {
      if (docStore.getState().doc.name !== name) dispatch({ type: 'setMeta', meta: { name } })
      await flush()
      const { id, rev } = docStore.getState()
      if (id === null) return
      const saved = await api.saveDraftVersion(id, rev, name, triggersOff && activates, active?.version ?? 0)
      if (docStore.getState().id === id)
        docStore.setState({ baseVersion: saved.version, baseName: saved.name, baseRev: saved.rev })
      const off = saved.diagnostics.find(({ code }) => code === 'triggers_off')
      if (off) toast(`${savedText(saved)} ${off.message} Settings has a switch for each.`, 'err')
      else toast(savedText(saved), 'ok')
      close()
    } catch (error) {
      setProblems(problemsOf(error))
      found.reload()
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={name ? `Publish ${name}` : 'Publish'}
      className="publish"
      primaryFirst={base !== null}
      open
      onClose={close}
      aside={<Since active={active} next={next} again={again !== null} />}
      foot={
        <>
          {why && !busy ? (
            <p className="publish__why" data-testid="publish-why">
              {why}.
            </p>
          ) : null}
          <Button kind="bare" onClick={close}>
            Cancel
          </Button>
          <Button kind="primary" data-testid="save-version" why={why} onClick={() => void publish()}>
            {next === null ? 'Publish' : `Publish version ${next}${again === null ? '' : ' again'}`}
          </Button>
        </>
      }
    >
      <form
        data-testid="publish-dialog"
        onSubmit={(event) => {
          event.preventDefault()
          void publish()
        }}
      >
        <div className="publish__head">
          <label>
            <span className="label">Name of the workflow</span>
            <input
              type="text"
              value={typed}
              data-testid="publish-name"
              placeholder="For example: orders"
              onChange={(event) => (setWaits(false), setTyped(event.target.value))}
              spellCheck={false}
              maxLength={200}
            />
          </label>
          {known ? <ChangeSentence diff={impact.changes} /> : null}
          {base && name && base.name !== name ? (
            <p className="publish__change">{base.name} stays published as it is.</p>
          ) : null}
        </div>
        {found.error ? (
          <p className="notice" data-tone="err" role="alert">
            What this would replace is not known: {found.error.message}{' '}
            <Button onClick={found.reload}>Try again</Button>
          </p>
        ) : (
          <Columns impact={impact} active={active} />
        )}
        {known && (active || tested) ? (
          <Suspense fallback={null}>
            <PublishReplay key={active ? 'last' : 'kept'} name={name} doc={doc} first={active ? 500 : 'kept'} />
          </Suspense>
        ) : null}
        {triggersOff ? <TriggersOff activates={activates} onChange={setActivates} /> : null}
        {problems ? <Refused {...problems} onShow={show} /> : null}
        <Stops stops={impact.stops} ticked={(id) => ticked.includes(`${name} ${id}`)} onTick={tick} />
      </form>
    </Dialog>
  )

  function show(found: Diagnostic): void {
    close()
    goToFinding(doc, found, specsOf())
  }

  function tick(id: string): void {
    const key = `${name} ${id}`
    setTicked(ticked.includes(key) ? ticked.filter((each) => each !== key) : [...ticked, key])
  }
}

/** A box to tick for each thing that stops. */
function Stops({
  stops,
  ticked,
  onTick,
}: {
  stops: readonly Effect[]
  ticked: (id: string) => boolean
  onTick: (id: string) => void
}): ReactElement | null {
  if (!stops.length) return null
  return (
    <div className="publish__stops">
      {stops.map(({ id, what, note }) => (
        <label key={id} data-testid={`stops-${id}`}>
          <input type="checkbox" checked={ticked(id)} onChange={() => onTick(id)} />
          <span>
            <b>
              {what} {id === 'version' ? 'is replaced.' : 'stops.'}
            </b>{' '}
            {note[0]!.toUpperCase() + note.slice(1)}.
          </span>
          {ticked(id) ? null : <small>Tick to publish</small>}
        </label>
      ))}
    </div>
  )
}

function Since({
  active,
  next,
  again,
}: {
  active: Active | null
  next: number | null
  again: boolean
}): ReactElement | null {
  if (next === null) return null
  return (
    <>
      <span className="publish__version">{`Version ${next}${again ? ' again' : ''}`}</span>
      {active ? (
        <span className="publish__since">
          after version {active.version}, live for {roughly(Math.max(0, serverNow() - active.sinceMs))}
        </span>
      ) : null}
    </>
  )
}

function TriggersOff({ activates, onChange }: { activates: boolean; onChange: (on: boolean) => void }): ReactElement {
  return (
    <div className="notice" data-tone="wait" data-testid="triggers-off">
      <p>Not all blocks and tools were imported, so new triggers stay off.</p>
      <label className="checkline">
        <input
          type="checkbox"
          data-testid="activate-triggers"
          checked={activates}
          onChange={(event) => onChange(event.target.checked)}
        />{' '}
        Activate the triggers
      </label>
      {activates ? <p>Runs that they start fail when they reach a block that was not imported.</p> : null}
    </div>
  )
}

/** A refusal that is about a block has its place. */
function problemsOf(error: unknown): Problems {
  if (!(error instanceof ApiError)) return { text: messageOf(error), list: [] }
  const list = error.diagnostics.filter(({ severity }) => severity === 'error')
  if (error.code === 'would_replace') return { text: MET, list }
  const { code, pointer, message, hint } = error
  if (!list.length && pointer.startsWith('/blocks/')) list.push({ code, severity: 'error', pointer, message, hint })
  return { text: list.length ? 'It cannot be published yet.' : messageOf(error), list }
}

/** A message whose place is written before it. */
const withoutPlace = (message: string): string => message.replace(/^(block '[^']*'|"[^"]*"): /, '')

function Refused({ text, list, onShow }: Problems & { onShow: (found: Diagnostic) => void }): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  return (
    <div role="alert" className="dialogform__refused">
      <p>{text}</p>
      <ul>
        {list.slice(0, 8).map((found, i) => (
          <li key={i}>
            <button type="button" className="publish__place" onClick={() => onShow(found)}>
              {placeOfFinding(doc, found, specsOf()).words}
            </button>
            : {withoutPlace(found.message)}
          </li>
        ))}
      </ul>
    </div>
  )
}

interface Found {
  name: string
  /** Null: the name is free. */
  active: Active | null
  /** The number that the version gets if its document is a new one. */
  next: number | null
}

/** The workflow that is published under this name now. */
function useActive(name: string): Loaded<Found> {
  const later = useLater(name, 250)
  return useData(() => loadActive(later), [later])
}

const COMPARED = 8

/** The newest of the last versions, but for the active one, that is the same as the draft: publishing makes it live again. */
function useEqual(name: string, doc: Document, active: Active | null, next: number | null): number | null {
  const versions = useData(async () => {
    if (active === null || next === null) return []
    const numbers = Array.from({ length: COMPARED }, (_, i) => next - 1 - i).filter(
      (n) => n > 0 && n !== active.version,
    )
    return await Promise.all(
      numbers.map(async (version) => ({ version, document: (await api.workflow(name, version)).document })),
    )
  }, [name, active?.version, next])
  return useMemo(() => {
    const bare = withoutPins(doc)
    if (!active || isSame(diffDocuments(active.document, bare))) return null
    const same = versions.value?.find(({ document }) => {
      const diff = diffDocuments(document, bare)
      return isSame(diff) && !diff.moved.length
    })
    return same?.version ?? null
  }, [doc, active, versions.value])
}

async function loadActive(name: string): Promise<Found> {
  if (nameFault(name) !== null) return { name, active: null, next: null }
  const head = (await api.workflows()).find((each) => each.name === name)
  if (!head) return { name, active: null, next: null }
  const [stored, webhooks, schedules, runs] = await Promise.all([
    api.workflow(name, head.version),
    triggers.webhooks(name).catch(() => []),
    triggers.schedules(name).catch(() => []),
    api.runs({ workflow: name, limit: 1 }),
  ])
  const counts = runs.counts
  const openRuns = counts ? counts.queued + counts.running + counts.waiting : 0
  const document = repair(stored.document).document
  const active = { version: head.version, sinceMs: head.activated_at_ms, document, webhooks, schedules, openRuns }
  return { name, active, next: head.newest + 1 }
}

const isUntitled = (name: string): boolean => name.trim().toLowerCase() === UNTITLED

function nameFault(name: string): string | null {
  if (!name) return 'Name the workflow first'
  if (isUntitled(name)) return 'Choose a name: every new draft is called untitled'
  return /[/\p{Cc}]/u.test(name) ? 'The name is part of addresses: leave out slashes' : null
}

function notKnown(found: Loaded<Found>, name: string): string | null {
  if (found.error) return 'What this would replace is not known'
  return found.loading || found.value?.name !== name ? 'Looking up what this would replace' : null
}

function toTick(ticks: readonly Effect[]): string | null {
  if (!ticks.length) return null
  return ticks.length === 1
    ? `Tick that ${ticks[0]!.what} ${ticks[0]!.id === 'version' ? 'is replaced' : 'stops'}`
    : `Tick the ${ticks.length} things that stop`
}

const isIncomplete = (found: readonly Diagnostic[]): boolean => found.some((each) => each.code === 'not_imported')

/** Whether it has a schedule, webhook, form or chat. */
const startsByItself = (doc: Document, specs: Specs): boolean =>
  Object.values(doc.blocks).some(
    (block) => isTrigger(block, specs) && block.type !== 'start' && block.enabled !== false,
  )

function savedText({ name, version, created, activated, replaced }: DraftVersion): string {
  if (created) return `Published version ${version} of ${name}.`
  if (!activated) return `No changes: version ${version} of ${name} is live.`
  return replaced === null
    ? `Version ${version} of ${name} is live again.`
    : `Version ${version} of ${name} is live again instead of version ${replaced}.`
}
