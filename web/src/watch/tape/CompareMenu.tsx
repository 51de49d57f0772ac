// Another run to compare with: the one it began as, then the latest of the same workflow.

import { useEffect, useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import type { RunSummary } from '../../api/schemas'
import { runStore } from '../../state/live'
import { Menu, type MenuEntry } from '../../ui/Menu'
import { wordOf } from '../../ui/status'
import { toast } from '../../ui/Toast'
import { dateTime } from '../../ui/time'
import { shortId } from '../../ui/words'
import { compareWith } from './compare'

const SHOWN_MAX = 12

export default function CompareMenu({
  at,
  onClose,
}: {
  at: { x: number; y: number }
  onClose: () => void
}): ReactElement | null {
  const [runs, setRuns] = useState<RunSummary[] | null>(null)
  const { meta, head } = runStore.getState()
  useEffect(() => {
    if (!meta) return
    let current = true
    api
      .runs({ workflow: meta.workflow, limit: SHOWN_MAX + 1, counts: 0 })
      .then((page) => current && setRuns(page.runs.filter((run) => run.id !== meta.id)))
      .catch((error: unknown) => {
        toast(error instanceof Error ? error.message : String(error))
        onClose()
      })
    return () => {
      current = false
    }
  }, [meta])
  if (!runs) return null
  const source = head.forkedFrom?.run
  const entries: MenuEntry[] = runs
    .filter((run) => run.id !== source)
    .slice(0, SHOWN_MAX)
    .map((run) => ({
      label: `Run ${shortId(run.id)}, ${wordOf(run.status).toLowerCase()}, ${dateTime(run.created_at_ms)}`,
      onSelect: () => compareWith(run.id),
    }))
  if (source)
    entries.unshift({
      label: `Run ${shortId(source)}, which this one began as`,
      onSelect: () => compareWith(source),
    })
  if (!entries.length)
    entries.push({ label: 'No other run', why: 'This workflow has no other run', onSelect: () => undefined })
  return <Menu label="Compare with" at={at} entries={entries} onClose={onClose} />
}
