// The bar of the editor: the workflow's name, its versions, whether it is saved; and Publish and Run, the only boxes.

import { lazy, Suspense, useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { cancelRun, runCommand } from '../../canvas/commands'
import { run } from '../../actions/start'
import { keyText, type KeyId } from '../../keys'
import { serverNow } from '../../net/clock'
import { dispatch, docStore, flush, type Saving } from '../../state/doc'
import { runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { isEnded } from '../../run'
import { useTitles } from '../../state/titles'
import { select, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { ConnectionChip } from '../../ui/ConnectionChip'
import { selectFirst } from '../../ui/selectFirst'
import type { IconName } from '../../ui/icons'
import { MenuButton, type MenuEntry } from '../../ui/Menu'
import { useReadOnly } from '../../ui/rights'
import { Status } from '../../ui/status'
import { roughly } from '../../ui/time'
import { useWhyNotKept } from '../../watch/run/useWhyNotKept'
import TopBar from './TopBar'
import { VersionMenu } from './VersionMenu'

const TestsDialog = lazy(() => import('./TestsDialog'))

export function EditorBar({ id }: { id: string }): ReactElement {
  const name = useStore(docStore, (s) => s.doc.name ?? '')
  const base = useStore(docStore, (s) => s.baseName)
  const titleOf = useTitles()
  const readonly = useStore(docStore, (s) => s.readonly)
  const isOpen = useStore(docStore, (s) => s.id === id)
  const mayNot = useReadOnly()
  const why = mayNot ?? (readonly ? 'This window is too small to edit.' : null)
  const tabs = [
    { to: `/w/${id}`, label: 'Edit' },
    { to: `/runs?workflow=${encodeURIComponent(name)}`, label: 'Runs' },
    ...(base ? [{ to: `/loom/${encodeURIComponent(base)}`, label: 'Loom' }] : []),
    { to: '/approvals', label: 'Approvals' },
  ]
  return (
    <TopBar
      tabs={tabs}
      left={
        <>
          <span className="bar__slash" aria-hidden="true">
            /
          </span>
          <h1 className="visually-hidden">{name || 'Untitled'}</h1>
          <WorkflowName name={name} readonly={readonly || !isOpen} />
          {base && titleOf(base) !== name && titleOf(base) !== base ? (
            <span className="quiet" title={`Published as ${base}, shown as ${titleOf(base)}`}>
              {titleOf(base)}
            </span>
          ) : null}
          <VersionMenu />
          <SaveState />
        </>
      }
      right={
        <>
          <span data-testid="chip" className="bar__chip">
            <RunChip />
          </span>
          <Button
            kind="bare"
            className="bar__wide"
            icon="search"
            iconOnly
            keys={keyText('find')}
            onClick={() => void runCommand('find', 'edit')}
          >
            Find and replace
          </Button>
          <UndoButton readonly={readonly} />
          <PlaygroundButton />
          <More readonly={readonly} why={why} mayNot={mayNot} />
          <Button
            className="bar__mid"
            data-testid="publish"
            title={keyText('save')}
            why={why}
            onClick={() => uiStore.setState({ overlay: 'version' })}
          >
            Publish
          </Button>
          <RunButton mayNot={mayNot} />
        </>
      }
    />
  )
}

/** The state of the shown run; while that is not up to date, how far it is. */
function RunChip(): ReactElement {
  const mode = useStore(netStore, (s) => s.mode)
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const status = useStore(runStore, (s) => s.head.status)
  if (mode === 'live' && live)
    return (
      <span role="status" data-mode="live" data-testid="connection">
        <Status status={status} />
      </span>
    )
  if (mode !== 'ended' || !live || !isEnded(status)) return <ConnectionChip />
  return (
    <span role="status" data-mode="ended" data-testid="connection">
      <Button kind="bare" title="The last run ended. Show its result" onClick={() => select({})}>
        <Status status={status} />
      </Button>
    </span>
  )
}

function PlaygroundButton(): ReactElement {
  const open = useStore(uiStore, (s) => s.playground)
  return (
    <Button
      kind="bare"
      className="bar__mid"
      icon="chat_trigger"
      aria-pressed={open}
      data-testid="try"
      title="Send messages or events to the draft"
      onClick={() => uiStore.setState({ playground: !open })}
    >
      Try
    </Button>
  )
}

function UndoButton({ readonly }: { readonly: boolean }): ReactElement {
  const some = useStore(docStore, (s) => s.undo.length > 0)
  return (
    <Button
      kind="bare"
      className="bar__wide"
      icon="undo"
      iconOnly
      keys={keyText('undo')}
      why={readonly || !some ? 'Nothing to undo' : null}
      onClick={() => void runCommand('undo', 'edit')}
    >
      Undo
    </Button>
  )
}

/** What has keys only, for the pointer. */
function More({
  readonly,
  why,
  mayNot,
}: {
  readonly: boolean
  /** Why it cannot be edited, and why not run. */
  why: string | null
  mayNot: string | null
}): ReactElement {
  const undos = useStore(docStore, (s) => s.undo.length)
  const redos = useStore(docStore, (s) => s.redo.length)
  const notKept = useWhyNotKept()
  const item = (id: KeyId, label: string, icon: IconName, not: string | null = null): MenuEntry => ({
    label,
    icon,
    why: not,
    keys: keyText(id),
    onSelect: () => void runCommand(id, 'edit'),
  })
  const entries: MenuEntry[] = [
    { label: 'Run with options', icon: 'play', why: mayNot, onSelect: () => uiStore.setState({ overlay: 'run' }) },
    {
      label: 'Keep this run as test',
      icon: 'pin',
      why: mayNot ?? notKept,
      onSelect: () => void import('../../watch/run/useKept').then((found) => found.keepShown()),
    },
    { label: 'Show tests', icon: 'succeeded', onSelect: () => uiStore.setState({ overlay: 'tests' }) },
    {
      label: 'Evaluate prompts and models',
      icon: 'evaluator',
      why: mayNot,
      onSelect: () => uiStore.setState({ overlay: 'evaluate' }),
    },
    'line',
    item('undo', 'Undo', 'undo', readonly || !undos ? 'Nothing to undo' : null),
    item('redo', 'Redo', 'redo', readonly || !redos ? 'Nothing to redo' : null),
    item('find', 'Find and replace', 'search'),
    'line',
    item('zoomIn', 'Zoom in', 'plus'),
    item('zoomOut', 'Zoom out', 'minus'),
    item('fit', 'Fit all', 'block'),
    item('minimap', 'Minimap', 'note'),
    'line',
    item('tidy', 'Tidy', 'set', why),
    item('outline', 'Outline', 'parallel'),
    item('json', 'JSON', 'variables'),
    'line',
    item('shortcuts', 'Keyboard shortcuts', 'help'),
  ]
  const tests = useStore(uiStore, (s) => s.overlay === 'tests')
  return (
    <>
      <MenuButton kind="bare" icon="more" iconOnly label="More" data-testid="bar-more" entries={entries}>
        More
      </MenuButton>
      {tests ? (
        <Suspense fallback={null}>
          <TestsDialog />
        </Suspense>
      ) : null}
    </>
  )
}

/** Run, or Cancel while a run that was started here is under way. */
function RunButton({ mayNot }: { mayNot: string | null }): ReactElement {
  const status = useStore(runStore, (s) => (s.id === null ? null : s.head.status))
  const empty = useStore(docStore, (s) => Object.keys(s.doc.blocks).length === 0)
  const busy = status !== null && !isEnded(status)
  return (
    <>
      {busy ? (
        <Button
          icon="stop"
          data-testid="cancel"
          why={status === 'cancelling' ? 'Cancelling' : mayNot}
          title={keyText('cancel')}
          onClick={() => void cancelRun()}
        >
          {status === 'cancelling' ? 'Cancelling' : 'Cancel'}
        </Button>
      ) : null}
      <Button
        kind="primary"
        icon="play"
        data-testid="run"
        title={keyText('run')}
        why={mayNot ?? (empty ? 'Add a block first' : null)}
        onClick={() => void run()}
      >
        Run
      </Button>
    </>
  )
}

function WorkflowName({ name, readonly }: { name: string; readonly: boolean }): ReactElement {
  const [typed, setTyped] = useState<string | null>(null)
  const input = useRef<HTMLInputElement>(null)
  const end = (keep: boolean): void => {
    const next = typed?.trim()
    if (keep && next && next !== name) dispatch({ type: 'setMeta', meta: { name: next } })
    setTyped(null)
  }
  const shown = typed ?? name
  return (
    <input
      ref={input}
      type="text"
      className="bar__name"
      aria-label="Name of the workflow"
      data-testid="workflow-name"
      value={shown}
      readOnly={readonly}
      size={Math.max(6, Math.min(shown.length + 1, 32))}
      spellCheck={false}
      maxLength={120}
      onMouseDown={selectFirst}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={() => end(true)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') input.current?.blur()
        else if (event.key === 'Escape') {
          end(false)
          event.stopPropagation()
        }
      }}
    />
  )
}

const WORDS: Readonly<Record<Saving, string>> = {
  saved: 'Saved',
  dirty: 'Editing',
  saving: 'Saving',
  offline: 'Saved in this browser only',
  conflict: 'Changed elsewhere',
  refused: 'Not saved',
}

/** Is it saved, and since when. */
function SaveState(): ReactElement {
  const saving = useStore(docStore, (s) => s.saving)
  const savedAt = useStore(docStore, (s) => s.savedAt)
  const error = useStore(docStore, (s) => s.error)
  const [now, setNow] = useState(serverNow)
  useEffect(() => {
    setNow(serverNow())
    const timer = setInterval(() => setNow(serverNow()), 10_000)
    return () => clearInterval(timer)
  }, [savedAt])
  const bad = saving === 'refused' || saving === 'conflict' || saving === 'offline'
  const text = saving === 'saved' && savedAt ? `Saved ${ago(now - savedAt)}` : WORDS[saving]
  return (
    <span
      className="bar__save"
      data-testid="save-state"
      data-saving={saving}
      data-bad={bad || undefined}
      role="status"
      title={error ?? (savedAt ? new Date(savedAt).toLocaleString() : undefined)}
    >
      {text}
      {saving === 'refused' || saving === 'offline' ? (
        <Button kind="bare" onClick={() => void flush()}>
          Try again
        </Button>
      ) : null}
    </span>
  )
}

function ago(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 10) return 'just now'
  if (s < 60) return `${Math.floor(s / 10) * 10} s ago`
  return `${roughly(ms)} ago`
}
