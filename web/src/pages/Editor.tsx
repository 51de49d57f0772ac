// A workflow that is edited: bar, palette, canvas, inspector and the drawer with the Tape. JSON takes the inspector's place,
// the outline the palette's.

import { lazy, Suspense, useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import Canvas from '../canvas/Canvas'
import { addHere } from '../canvas/commands'
import Inspector from '../edit/inspector/beside'
import Palette from '../edit/palette/Palette'
import { EditorBar } from '../edit/shell/EditorBar'
import { Notices } from '../edit/shell/Notices'
import TopBar from '../edit/shell/TopBar'
import Drawer from '../watch/tape/Drawer'
import { keyText } from '../keys'
import { setQuery, Link } from '../ui/navigation'
import { closeDraft, docStore, openDraft } from '../state/doc'
import { api, type RunQuery } from '../net/api'
import type { RunSummary } from '../api/schemas'
import { closeRun, openRun, runStore } from '../state/live'
import { NOTHING, select, setPanels, uiStore, type View } from '../state/ui'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Splitter } from '../ui/Splitter'
import { useReadOnly } from '../ui/rights'
import { useWidthBelow } from '../ui/useWidthBelow'
import { Boundary } from './Boundary'
import './editor.css'

const JsonView = lazy(() => import('../forms/json/JsonView'))
const OutlineView = lazy(() => import('../edit/outline/OutlineView'))
const FirstSteps = lazy(() => import('./FirstSteps'))
const RunAbove = lazy(() => import('./RunAbove'))
const Playground = lazy(() => import('../edit/playground/Playground'))
const Setup = lazy(() => import('../edit/setup/Setup'))
const RunDialog = lazy(() => import('../watch/run/RunDialog'))
const ConflictDialog = lazy(() => import('../edit/shell/ConflictDialog'))
const BlockSheet = lazy(() => import('../edit/sheet/Sheet'))
const FindDialog = lazy(() => import('../edit/shell/FindDialog'))

// Begins now: what is typed right after the key that opens it must find it there.
const loadPicker = () => import('../edit/palette/BlockPicker')
const BlockPicker = lazy(loadPicker)
loadPicker().catch(() => undefined)

// Of a durable function alone.
const Code = lazy(() => import('./lane/Code'))

const RAIL = 44
const OUTLINE_MIN = 280

export default function Editor({ id }: { id: string }): ReactElement {
  const [error, setError] = useState<string | null>(null)
  const [turn, setTurn] = useState(0)
  const open = useStore(docStore, (s) => s.id === id)
  const sheet = useStore(uiStore, (s) => s.sheet !== null)
  const conflict = useStore(docStore, (s) => s.conflict !== null)
  useEffect(() => {
    setError(null)
    // After an import the list of what is left is open, see pages/Home.tsx.
    const setup = new URLSearchParams(location.search).has('setup')
    uiStore.setState({ selection: NOTHING, iter: {}, overlay: null, sheet: null, setup })
    if (setup) setQuery({ setup: null })
    openDraft(id)
      .then(() => showLastRun(id))
      .catch((reason: unknown) => setError(reason instanceof Error ? reason.message : String(reason)))
    return () => {
      closeRun()
      void closeDraft()
    }
  }, [id, turn])
  useTitle()
  useViewInQuery()
  useBlockInQuery(open)
  const small = useWidthBelow(900)
  const phone = useWidthBelow(600)
  const refused = useReadOnly() !== null
  useEffect(() => {
    if (open) docStore.setState({ readonly: small || refused })
  }, [open, small, refused])
  if (error) {
    return (
      <>
        <TopBar />
        <main className="page">
          <EmptyState icon="warning" title="Cannot open this draft">
            <p role="alert">{error}</p>
            <Button onClick={() => setTurn(turn + 1)}>Try again</Button>{' '}
            <Link to="/" className="button">
              Go to workflows
            </Link>
          </EmptyState>
        </main>
      </>
    )
  }
  return (
    <div className="editor" data-small={small || undefined}>
      <EditorBar id={id} />
      {small ? <Notices /> : null}
      <main className="editor__main">
        {open ? (
          small ? (
            <SmallPanels phone={phone} />
          ) : (
            <Panels />
          )
        ) : (
          <p className="editor__loading quiet" role="status">
            Loading
          </p>
        )}
      </main>
      <footer className="editor__drawer">
        <Drawer mode="edit" />
      </footer>
      {sheet && open ? (
        <Suspense fallback={null}>
          <BlockSheet mode="edit" />
        </Suspense>
      ) : null}
      <Suspense fallback={null}>
        <BlockPicker />
      </Suspense>
      <Suspense fallback={null}>
        <RunDialog />
        <FindDialog />
        {conflict ? <ConflictDialog /> : null}
      </Suspense>
    </div>
  )
}

/** A small window: nothing is edited. The smallest ones get the outline instead of the canvas. */
function SmallPanels({ phone }: { phone: boolean }): ReactElement {
  const view = useStore(uiStore, (s) => s.view)
  const chosen = useStore(
    uiStore,
    (s) =>
      s.selection !== NOTHING && s.selection.blocks.length + s.selection.edges.length + s.selection.notes.length > 0,
  )
  return (
    <>
      {phone ? (
        <div className="editor__outline">
          <Suspense fallback={null}>
            <OutlineView />
          </Suspense>
        </div>
      ) : (
        <div className="editor__centre">
          <Centre />
        </div>
      )}
      {view === 'json' ? (
        <div className="editor__sheet">
          <Suspense fallback={null}>
            <JsonView />
          </Suspense>
        </div>
      ) : chosen ? (
        <div className="editor__sheet">
          <SafeInspector />
        </div>
      ) : null}
    </>
  )
}

/** What a block of an odd shape breaks is its own form and nothing else. */
function SafeInspector(): ReactElement {
  const selection = useStore(uiStore, (s) => s.selection)
  return (
    <Boundary part="The inspector" resetOn={selection}>
      <Inspector mode="edit" />
    </Boundary>
  )
}

/** The last run of the draft, or of what it was published as, stays painted when one comes back to it. */
async function showLastRun(draft: string): Promise<void> {
  const isOpen = (): boolean => docStore.getState().id === draft && runStore.getState().id === null
  if (!isOpen()) return
  const workflow = docStore.getState().baseName
  // Without it the editor is as useful: nothing is said when it cannot be had.
  const last = (where: RunQuery): Promise<RunSummary | null> =>
    // No workflow has a slash in its name: those are single steps.
    api.runs({ ...where, limit: 20, counts: 0 }).then(
      (page) => page.runs.find((each) => !each.workflow.includes('/')) ?? null,
      () => null,
    )
  const found = await Promise.all([last({ draft }), workflow === null ? null : last({ workflow })])
  const [run] = found.filter((each) => each !== null).sort((a, b) => b.created_at_ms - a.created_at_ms)
  if (run && isOpen()) await openRun(run.id)
}

function Panels(): ReactElement {
  const view = useStore(uiStore, (s) => s.view)
  const panels = useStore(uiStore, (s) => s.panels)
  const playground = useStore(uiStore, (s) => s.playground)
  const setup = useStore(uiStore, (s) => s.setup)
  const id = useStore(docStore, (s) => s.id)
  const outline = view === 'outline'
  const left = outline ? Math.max(panels.palette, OUTLINE_MIN) : panels.paletteOpen ? panels.palette : RAIL
  return (
    <>
      <div className="editor__palette" style={{ width: left }}>
        {outline ? (
          <Suspense fallback={null}>
            <OutlineView />
          </Suspense>
        ) : (
          <Palette />
        )}
      </div>
      {outline || panels.paletteOpen ? (
        <Splitter
          label="Width of the blocks"
          value={left}
          min={160}
          max={480}
          onChange={(palette) => setPanels({ palette })}
        />
      ) : (
        <div className="splitter" aria-hidden="true" />
      )}
      <div className="editor__centre">
        <Centre />
        <Suspense fallback={null}>
          <FirstSteps keys={keyText('add')} onAdd={addHere} />
        </Suspense>
        <div className="overcanvas">
          <Notices />
          <Suspense fallback={null}>
            <RunAbove />
          </Suspense>
        </div>
      </div>
      {setup ? (
        <div className="editor__playground">
          <Suspense fallback={null}>
            <Setup key={id} />
          </Suspense>
        </div>
      ) : playground && id !== null ? (
        <div className="editor__playground">
          <Suspense fallback={null}>
            <Playground key={id} draft={id} />
          </Suspense>
        </div>
      ) : null}
      {view === 'json' ? (
        <>
          <Splitter
            label="Width of the JSON"
            panel="after"
            value={panels.json}
            min={280}
            max={900}
            onChange={(json) => setPanels({ json })}
          />
          <div className="editor__side" style={{ width: panels.json }}>
            <Suspense fallback={null}>
              <JsonView />
            </Suspense>
          </div>
        </>
      ) : (
        <>
          <Splitter
            label="Width of the inspector"
            panel="after"
            value={panels.inspector}
            min={240}
            max={640}
            onChange={(inspector) => setPanels({ inspector })}
          />
          <div className="editor__side" style={{ width: panels.inspector }}>
            <SafeInspector />
          </div>
        </>
      )}
    </>
  )
}

/** The canvas; of a durable function its code. */
function Centre(): ReactElement {
  const coded = useStore(docStore, (s) => Object.values(s.doc.blocks).some((block) => block.source))
  const canvas = <Canvas mode="edit" />
  return coded ? (
    <Suspense fallback={null}>
      <Code drawing={canvas} />
    </Suspense>
  ) : (
    canvas
  )
}

function useTitle(): void {
  const name = useStore(docStore, (s) => s.doc.name)
  useEffect(() => {
    document.title = name ? `${name} - weft` : 'weft'
    return () => {
      document.title = 'weft'
    }
  }, [name])
}

/** `?block=` chooses a block: back from a sign-in that began in one of its fields. */
function useBlockInQuery(open: boolean): void {
  useEffect(() => {
    const block = open && new URLSearchParams(location.search).get('block')
    if (!block) return
    select({ blocks: [block] })
    setQuery({ block: null })
  }, [open])
}

/** `?view=json` opens as JSON; changing the view changes the address. */
function useViewInQuery(): void {
  const view = useStore(uiStore, (s) => s.view)
  useEffect(() => {
    const asked = new URLSearchParams(location.search).get('view')
    uiStore.setState({ view: asked === 'json' || asked === 'outline' ? (asked satisfies View) : 'canvas' })
  }, [])
  useEffect(() => setQuery({ view: view === 'canvas' ? null : view }), [view])
}
