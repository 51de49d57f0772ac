// The line above a run: status, duration, input and output; cancel, run again, edit.

import { useEffect, useMemo, useState, type ReactElement, type ReactNode } from 'react'
import { useStore } from 'zustand'
import { announce } from '../../a11y'
import { keyOfEvent, keyText } from '../../keys'
import { api, ApiError } from '../../net/api'
import type { Json } from '../../api/schemas'
import { Link, navigate } from '../../ui/navigation'
import { chainOf, nameOf } from '../../document/document'
import { runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { isEnded, usedShort, type RunFold } from '../../run'
import { uiStore } from '../../state/ui'
import { shortId, whoOf } from '../../ui/words'
import { durationText, dateTime } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { Button } from '../../ui/Button'
import { ConnectionChip } from '../../ui/ConnectionChip'
import { Dialog } from '../../ui/Dialog'
import { MenuButton, type MenuEntry } from '../../ui/Menu'
import { Status } from '../../ui/status'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { ValueTree } from '../../ui/ValueTree'
import { messageOf } from '../../ui/words'
import { ForkDialog } from '../../watch/run/ForkDialog'
import { MigrateDialog } from './MigrateDialog'
import { useReadOnly } from '../../ui/rights'
import { useKept } from '../../watch/run/useKept'
import { useWhyNot } from '../../watch/run/useWhyNot'
import { RerunDialog } from '../../watch/run/RerunDialog'

export function RunHead(): ReactElement {
  const meta = useStore(runStore, (s) => s.meta)
  const shown = useStore(runStore, (s) => s.view.status)
  const head = useStore(runStore, (s) => s.head.status)
  const seq = useStore(runStore, (s) => s.head.seq)
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const doc = useStore(runStore, (s) => s.doc)
  const output = useStore(runStore, (s) => s.view.output)
  const finished = useStore(runStore, (s) => s.view.finishedAt)
  // A container runs as a whole: of what is inside, the outermost one is where to begin.
  const selected = useStore(uiStore, (s) =>
    s.selection.blocks.length === 1 && doc?.blocks[s.selection.blocks[0]!]
      ? (chainOf(doc, s.selection.blocks[0]!).at(-1) ?? s.selection.blocks[0]!)
      : null,
  )
  const [asked, setAsked] = useState(false)
  const [value, setValue] = useState<'input' | 'output' | null>(null)
  const [rerun, setRerun] = useState<{ from: string | null } | null>(null)
  const [dialog, setDialog] = useState<'fork' | 'migrate' | null>(null)
  const cursor = useStore(runStore, (s) => (s.cursor === 'live' ? s.head.seq : s.cursor))
  const moved = useStore(runStore, (s) => s.head.version)
  const forked = useStore(runStore, (s) => s.head.forkedFrom)
  const continues = useStore(runStore, (s) => s.head.continues)
  const continuedAs = useStore(runStore, (s) => s.head.continuedAs)

  // Until the first events are here, what the server said counts.
  const journal: RunFold['status'] = seq === 0 && meta ? meta.status : shown
  const ended = isEnded(seq === 0 && meta ? meta.status : head)
  const status = asked && live && !ended ? 'cancelling' : journal
  const mayNot = useReadOnly()
  const notNow = useWhyNot()
  const why = mayNot ?? notNow

  const cancel = async (): Promise<void> => {
    if (!meta || ended || asked || mayNot) return
    setAsked(true)
    announce('Cancelling')
    try {
      await api.cancelRun(meta.id, 'Cancelled on the run page')
    } catch (error) {
      // It ended meanwhile: the journal will say so.
      if (error instanceof ApiError && error.status === 409) return
      setAsked(false)
      toast(messageOf(error), 'err')
    }
  }
  useEffect(() => setAsked(false), [meta?.id])
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || document.querySelector('dialog[open]')) return
      const key = keyOfEvent(event, ['app', 'canvas'])
      if (key === 'cancel') void cancel()
      else if (key === 'rerun' && ended && !mayNot) setRerun({ from: selected })
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })

  const keeping = useKept()
  const input = useMemo(() => JSON.stringify(meta?.input ?? {}), [meta])
  const gave = useMemo(() => (output === undefined ? null : JSON.stringify(output)), [output])
  if (!meta) return <section className="runhead" aria-label="Run" />
  const version = moved ?? meta.version
  const more: MenuEntry[] = [
    {
      label: `Fork from event ${cursor}`,
      icon: 'router',
      why: mayNot ?? (cursor < 1 ? 'No event yet' : null),
      onSelect: () => setDialog('fork'),
    },
    keeping,
    {
      label: 'Move to another version',
      icon: 'redo',
      why: why ?? (ended ? 'The run has ended' : version === null ? 'The run has no published version' : null),
      onSelect: () => setDialog('migrate'),
    },
    ...(meta.children?.length
      ? [
          'line' as const,
          {
            label: `Child runs (${meta.children.length})`,
            onSelect: () => navigate(`/runs?parent=${encodeURIComponent(meta.id)}`),
          },
        ]
      : []),
  ]
  return (
    <section className="runhead" data-status={status} aria-label="Run">
      <h1 className="visually-hidden runhead__title">{`Run of ${meta.workflow}`}</h1>
      <Status status={status} />
      <Duration />
      <Used />
      {versionOf(version, meta.draft_rev) ? (
        <span className="label runhead__when" title={dateTime(meta.started_at_ms ?? meta.created_at_ms)}>
          {versionOf(version, meta.draft_rev)}
        </span>
      ) : null}
      {meta.parent ? (
        <span className="label runhead__when">
          Started by{' '}
          <Link
            to={`/runs/${meta.parent.run}?block=${encodeURIComponent(blockOf(meta.parent.key))}`}
            data-testid="parent"
          >
            {shortId(meta.parent.run)}
          </Link>
        </span>
      ) : null}
      {meta.by ? (
        <span className="label runhead__when" title={meta.by} data-testid="started-by">
          Started by {whoOf(meta.by)}
        </span>
      ) : null}
      {forked ? (
        <span className="label runhead__when">
          Fork of{' '}
          <Link to={`/runs/${forked.run}?seq=${forked.seq}`} data-testid="fork-source">
            {shortId(forked.run)} at {forked.seq}
          </Link>
        </span>
      ) : null}
      {continues ? (
        <span className="label runhead__when">
          Continues{' '}
          <Link to={`/runs/${continues}`} data-testid="continues">
            {shortId(continues)}
          </Link>
        </span>
      ) : null}
      {continuedAs ? (
        <span className="label runhead__when">
          Continued as{' '}
          <Link to={`/runs/${continuedAs}`} data-testid="continued-as">
            {shortId(continuedAs)}
          </Link>
        </span>
      ) : null}
      <Changed draft={meta.draft_id ?? null} rev={meta.draft_rev ?? null} />
      <Summary label="Input" text={input === '{}' ? 'None' : input} onOpen={() => setValue('input')} />
      {finished !== null && gave !== null ? (
        <Summary label="Output" text={gave} onOpen={() => setValue('output')} />
      ) : null}
      <span className="runhead__fill" />
      <span className="runhead__chip" data-testid="chip">
        <ConnectionChip />
      </span>
      {ended ? null : (
        <Button
          kind="danger"
          icon="stop"
          title={keyText('cancel')}
          data-testid="cancel"
          why={status === 'cancelling' ? 'Cancelling' : why}
          onClick={() => void cancel()}
        >
          {status === 'cancelling' ? 'Cancelling' : 'Cancel'}
        </Button>
      )}
      <Button
        icon="redo"
        title={keyText('rerun')}
        data-testid="rerun"
        why={mayNot ?? (doc ? null : 'The workflow document is not available')}
        onClick={() => setRerun({ from: ended ? selected : null })}
      >
        {ended && selected && doc?.blocks[selected] ? (
          <Wide short="Run again">{`Run again from ${nameOf(doc, selected)}`}</Wide>
        ) : (
          'Run again'
        )}
      </Button>
      <EditButton draft={meta.draft_id ?? null} why={mayNot} />
      <MenuButton kind="bare" icon="more" iconOnly label="More about this run" entries={more} data-testid="run-more">
        More
      </MenuButton>
      <Dialog
        title={value === 'input' ? 'Run input' : 'Run output'}
        wide
        open={value !== null}
        onClose={() => setValue(null)}
      >
        <ValueTree
          value={(value === 'input' ? meta.input : (output ?? null)) as Json}
          name={`${meta.workflow}-${value ?? ''}`}
          label={value ?? ''}
          height={480}
        />
      </Dialog>
      {dialog === 'fork' ? <ForkDialog run={meta} doc={doc} seq={cursor} onClose={() => setDialog(null)} /> : null}
      {dialog === 'migrate' && version !== null ? (
        <MigrateDialog run={meta} version={version} onClose={() => setDialog(null)} />
      ) : null}
      {rerun && doc ? (
        <RerunDialog run={meta} doc={doc} ended={ended} from={rerun.from} onClose={() => setRerun(null)} />
      ) : null}
    </section>
  )
}

function Duration(): ReactElement | null {
  const started = useStore(runStore, (s) => s.view.startedAt)
  const finished = useStore(runStore, (s) => s.view.finishedAt)
  const offline = useStore(netStore, (s) => s.mode === 'offline')
  const now = useClock(100)
  if (started === null) return null
  return (
    <span
      className="mono runhead__took"
      data-testid="duration"
      title={offline && finished === null ? 'Paused while the connection is lost' : undefined}
    >
      {durationText((finished ?? now) - started)}
    </span>
  )
}

/** Of the steps of this run, up to the event that is shown; child runs have their own. */
function Used(): ReactElement | null {
  const nodes = useStore(runStore, (s) => s.view.nodes)
  const text = useMemo(() => usedShort([...nodes.values()].flatMap((node) => node.steps)), [nodes])
  if (!text) return null
  return (
    <span className="label runhead__when" data-testid="used" title="Used by the models of this run, without child runs">
      {text}
    </span>
  )
}

/** A value that is never cut. */
const SHORT = 6

function Summary({ label, text, onOpen }: { label: string; text: string; onOpen: () => void }): ReactElement {
  return (
    <button
      type="button"
      className="runhead__value"
      data-short={text.length <= SHORT || undefined}
      onClick={onOpen}
      title={`Show the run ${label.toLowerCase()}`}
    >
      <span className="label">{label}</span>{' '}
      <span className="mono">{text.length > 120 ? `${text.slice(0, 120)}...` : text}</span>
    </button>
  )
}

/** "draft changed since": what is edited now is not what ran. */
function Changed({ draft, rev }: { draft: string | null; rev: number | null }): ReactElement | null {
  const now = useData(async () => (draft === null ? null : (await api.draft(draft)).rev), [draft])
  if (now.value === null || rev === null || now.value === rev) return null
  return (
    <span className="label runhead__when" data-testid="draft-changed">
      Draft changed since this run
    </span>
  )
}

/** To the draft that ran; without one (or when it is gone) to a copy of the document. */
function EditButton({ draft, why }: { draft: string | null; why: string | null }): ReactElement {
  const known = useData(async () => {
    if (draft === null) return false
    try {
      await api.draft(draft)
      return true
    } catch {
      return false
    }
  }, [draft])
  const copy = async (): Promise<void> => {
    const { doc } = runStore.getState()
    if (!doc) return
    try {
      navigate(`/w/${(await api.createDraft(doc, doc.name)).id}`)
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return known.value ? (
    <Button icon="edit" why={why} onClick={() => navigate(`/w/${draft}`)}>
      Edit
    </Button>
  ) : (
    <Button icon="edit" why={why} onClick={() => void copy()}>
      Edit a copy
    </Button>
  )
}

function Wide({ short, children }: { short: string; children: ReactNode }): ReactElement {
  return (
    <>
      <span className="runhead__wide">{children}</span>
      <span className="runhead__short">{short}</span>
    </>
  )
}

function versionOf(version: number | null, rev: number | null | undefined): string {
  if (version !== null) return `Version ${version}`
  return rev ? `Draft, revision ${rev}` : ''
}

const blockOf = (key: string): string => key.split('@')[0]!.split(':')[0]!
