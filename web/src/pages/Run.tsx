// One run, live or as it was at any moment: the document it is pinned to on the canvas, the inspector, and the Tape.

import { lazy, Suspense, useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { announce } from '../a11y'
import { Canvas } from '../canvas/Canvas'
import Inspector from '../edit/inspector/beside'
import TopBar from '../edit/shell/TopBar'
import { compareStore } from '../watch/tape/compare'
import { momentQuery, readMoment } from '../watch/tape/moment'
import Drawer from '../watch/tape/Drawer'
import { closeRewind, rewindStore } from '../watch/tape/rewindStore'
import { RewindLine } from '../watch/tape/RewindLine'
import Trace from '../watch/trace/Trace'
import { placeOf } from '../run'
import { selectNode } from '../actions/jump'
import { Link, setQuery } from '../ui/navigation'
import { durableOf } from '../document/durable'
import { loadSpecs } from '../state/doc'
import { nameOf } from '../document/document'
import { closeRun, isLoading, openRun, runStore } from '../state/live'
import { firstError, isEnded } from '../run'
import { NOTHING, select, uiStore } from '../state/ui'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { wordOf } from '../ui/status'
import { useTitles } from '../state/titles'
import { OneOrAll } from './loom/OneOrAll'
import { InspectorColumn } from './run/InspectorColumn'
import { RunHead } from './run/RunHead'
import { RunNotices } from './run/RunNotices'
import { useFamily } from './run/useFamily'
import { useWidthBelow } from '../ui/useWidthBelow'
import './pages.css'
import './run.css'

// Of a durable function alone.
const Lane = lazy(() => import('./lane/Lane'))
const BlockSheet = lazy(() => import('../edit/sheet/Sheet'))

export default function Run({ id }: { id: string }): ReactElement {
  const doc = useStore(runStore, (s) => s.doc)
  const meta = useStore(runStore, (s) => s.meta)
  const titleOf = useTitles()
  const error = useStore(runStore, (s) => s.error)
  const loading = useStore(runStore, isLoading)
  const inspected = useStore(uiStore, (s) => s.selection.blocks.length > 0)
  const sheet = useStore(uiStore, (s) => s.sheet !== null)
  const narrow = useWidthBelow(900)
  const phone = useWidthBelow(600)
  const durable = doc !== null && durableOf(doc) !== null
  const [turn, setTurn] = useState(0)

  useEffect(() => {
    const moment = readMoment(new URLSearchParams(location.search))
    uiStore.setState({
      selection: moment.block ? { ...NOTHING, blocks: [moment.block] } : NOTHING,
      step: moment.block ? moment.step : null,
      iter: moment.iter,
    })
    compareStore.setState({ id: moment.with, other: null, error: null })
    rewindStore.setState({ open: moment.rewind })
    let current = true
    // Block types say which blocks are containers: the fold needs them.
    void loadSpecs()
      .catch(() => undefined)
      .then(() => {
        if (current) void openRun(id, moment.seq === null ? {} : { seq: moment.seq })
      })
    return () => {
      current = false
      closeRun()
      closeRewind()
      compareStore.setState({ id: null, other: null, error: null })
      uiStore.setState({ selection: NOTHING, iter: {}, sheet: null })
    }
  }, [id, turn])
  useFamily()
  useMigrated(() => setTurn((n) => n + 1))
  useMomentInAddress(id)
  useSpoken()
  useFirstErrorSelected(!narrow)
  useTabIcon()

  if (error && !meta) {
    return (
      <div className="screen">
        <TopBar />
        <main className="page">
          <EmptyState icon="warning" title={error}>
            <div className="run__buttons">
              <Button onClick={() => setTurn(turn + 1)}>Try again</Button>
              <Link className="button" to="/runs">
                All runs
              </Link>
            </div>
          </EmptyState>
        </main>
      </div>
    )
  }
  return (
    <div className="run" data-testid="run-page">
      <TopBar
        left={
          meta ? (
            <Link className="run__crumb" to={`/runs?workflow=${encodeURIComponent(meta.workflow)}`}>
              {titleOf(meta.workflow)}
            </Link>
          ) : null
        }
        right={
          meta && meta.version !== null && !narrow ? (
            <OneOrAll workflow={meta.workflow} run={meta.id} here="one" />
          ) : null
        }
      />
      <RunHead />
      {narrow && !durable ? <RunNotices /> : null}
      {durable ? (
        <main className="run__body">
          <Suspense
            fallback={
              <p className="run__loading quiet" role="status">
                Loading
              </p>
            }
          >
            <Lane doc={doc} />
          </Suspense>
        </main>
      ) : phone ? (
        <main className="run__lists" aria-label="Trace">
          <Trace />
        </main>
      ) : (
        <main className="run__body">
          <div className="run__canvas">
            <div className="overcanvas">
              <RewindLine />
              {narrow ? null : <RunNotices />}
            </div>
            {doc ? (
              <>
                <Canvas mode="run" />
                {loading ? (
                  <p className="run__late quiet" data-testid="run-loading">
                    Loading the events of this run
                  </p>
                ) : null}
              </>
            ) : meta ? (
              <EmptyState title="The workflow document of this run is not available">
                See the trace and the events below.
              </EmptyState>
            ) : (
              <p className="run__loading quiet" role="status">
                Loading
              </p>
            )}
          </div>
          {inspected && doc && !narrow ? (
            <InspectorColumn>
              <Inspector mode="run" />
            </InspectorColumn>
          ) : null}
        </main>
      )}
      <Drawer mode="run" />
      {sheet && doc ? (
        <Suspense fallback={null}>
          <BlockSheet mode="run" />
        </Suspense>
      ) : null}
      {inspected && doc && narrow && !durable ? (
        <Sheet>
          <Inspector mode="run" />
        </Sheet>
      ) : null}
    </div>
  )
}

/** The run moved to another version: what is drawn is loaded again. */
function useMigrated(reload: () => void): void {
  const moved = useStore(
    runStore,
    (s) => s.head.version !== null && s.meta !== null && s.head.seq >= s.meta.seq && s.meta.version !== s.head.version,
  )
  useEffect(() => {
    if (moved) reload()
  }, [moved])
}

/** The inspector on small screens: comes up from the bottom. */
function Sheet({ children }: { children: ReactElement }): ReactElement {
  return (
    <aside className="sheet" aria-label="Inspector">
      <div className="sheet__head">
        <Button kind="bare" icon="down" onClick={() => select({})}>
          Close
        </Button>
      </div>
      <div className="sheet__body">{children}</div>
    </aside>
  )
}

/** The address follows what is shown, so that a reload, or a copy of it, shows the same. */
function useMomentInAddress(id: string): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const put = (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        if (runStore.getState().id === id && location.pathname === `/runs/${encodeURIComponent(id)}`)
          setQuery(momentQuery())
      }, 300)
    }
    let shown = ''
    const look = (): void => {
      const now = JSON.stringify(momentQuery())
      if (now === shown) return
      shown = now
      put()
    }
    const stops = [runStore, uiStore, compareStore, rewindStore].map((store) => store.subscribe(look))
    return () => {
      clearTimeout(timer)
      for (const stop of stops) stop()
    }
  }, [id])
}

/** Failures, waits and the end are said aloud as they happen. */
function useSpoken(): void {
  useEffect(() => {
    let { head } = runStore.getState()
    return runStore.subscribe(() => {
      const { head: now, doc } = runStore.getState()
      const before = head
      head = now
      if (now === before || before.seq === 0 || now.seq < before.seq) return
      const name = (block: string): string => (doc ? nameOf(doc, block) : block)
      if (now.status !== before.status && isEnded(now.status))
        return announce(`Run ${wordOf(now.status).toLowerCase()}`)
      const failed = now.failures.length > before.failures.length ? now.nodes.get(now.failures.at(-1)!) : undefined
      if (failed) {
        const where = placeOf(failed.path, doc)
        return announce(`${name(failed.block)} failed${where ? ` in ${where}` : ''}`)
      }
      const opened = [...now.waits.values()].find((wait) => !before.waits.has(wait.id))
      if (opened) announce(`${name(opened.block)} is waiting`)
    })
  }, [])
}

/** A run that failed shows where, unless something is selected already. Not where the inspector would cover the canvas. */
function useFirstErrorSelected(on: boolean): void {
  const failed = useStore(runStore, (s) => s.head.status === 'failed')
  useEffect(() => {
    if (!failed || !on) return
    const { view, cursor } = runStore.getState()
    const node = firstError(view)
    if (node && cursor === 'live' && !uiStore.getState().selection.blocks.length) selectNode(node)
  }, [failed])
}

const TONES = { succeeded: '1d7347', failed: 'b92c17', cancelled: '7e848b', waiting: '8a5a00' } as const

/** The tab says how the run is: its title, and a coloured icon. */
function useTabIcon(): void {
  const status = useStore(runStore, (s) => s.head.status)
  const name = useStore(runStore, (s) => s.meta?.workflow ?? null)
  useEffect(() => {
    if (name === null) return
    const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    const plain = link?.getAttribute('href') ?? ''
    const colour = (TONES as Record<string, string>)[status] ?? '1b5fc9'
    document.title = `${wordOf(status)}: ${name} · weft`
    if (link)
      link.href = `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%23${colour}'/%3E%3Cpath d='M4 5v7M8 3v9M12 7v5' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E`
    return () => {
      document.title = 'weft'
      if (link) link.href = plain
    }
  }, [status, name])
}
