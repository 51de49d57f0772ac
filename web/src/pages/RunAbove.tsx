// Above the canvas of the editor: a run that something else started, and what the shown run needs attention for.

import { lazy, Suspense, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'
import Arrived from './Arrived'

const RunNotices = lazy(() => import('./run/RunNotices').then((m) => ({ default: m.RunNotices })))

export default function RunAbove(): ReactElement {
  return (
    <>
      <Arrived />
      <Attention />
    </>
  )
}

/** What the run failed with, and what it asks people, to be answered here. */
function Attention(): ReactElement | null {
  const any = useStore(
    runStore,
    (s) => s.view.status === 'failed' || s.view.waits.size > 0 || (s.meta?.child_waits ?? []).length > 0,
  )
  // A sheet has the question of its block, and the block itself where this would lie.
  const sheet = useStore(uiStore, (s) => s.sheet !== null)
  if (!any || sheet) return null
  return (
    <Suspense fallback={null}>
      <RunNotices editing />
    </Suspense>
  )
}
