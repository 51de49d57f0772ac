// Runs that something else than this page started (a webhook, a chat, a form, a schedule, a command) while the editor is open: the
// first one is shown at once, further ones are offered, so that a busy workflow does not turn the canvas under one's hands.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../net/api'
import { serverNow } from '../net/clock'
import { docStore } from '../state/doc'
import { openRun, runStore } from '../state/live'
import { Button } from '../ui/Button'
import { Ago } from '../ui/Ago'
import { Icon } from '../ui/icons'
import { wordOf } from '../ui/status'
import { usePolled } from './parts'

const EVERY_MS = 2000
/** The maximum by which the estimate of the server's clock is ahead of it. */
const CLOCK_MS = 1500

export default function Arrived(): ReactElement | null {
  const workflow = useStore(docStore, (s) => s.baseName)
  const shown = useStore(runStore, (s) => s.id)
  const shownAt = useStore(runStore, (s) => s.meta?.created_at_ms ?? null)
  const [since, setSince] = useState(serverNow)
  const [dismissed, setDismissed] = useState<string | null>(null)
  useEffect(() => setSince(serverNow()), [workflow])
  const polled = usePolled(
    async () => (workflow === null ? null : ((await api.runs({ workflow, limit: 1, counts: 0 })).runs[0] ?? null)),
    [workflow],
    EVERY_MS,
  )
  const newest = polled.value
  const from = Math.max(since - CLOCK_MS, shown !== null && shownAt !== null ? shownAt : 0)
  const fresh =
    newest !== null &&
    newest.workflow === workflow &&
    newest.id !== shown &&
    newest.id !== dismissed &&
    newest.created_at_ms > from
      ? newest
      : null
  useEffect(() => {
    if (fresh && shown === null) void openRun(fresh.id)
  }, [fresh?.id, shown])
  if (!fresh || shown === null) return null
  return (
    <div className="arrived" role="status" data-testid="arrived">
      <Icon name={fresh.status} size={14} />
      <p>
        {fresh.version === null ? 'Another run of this draft' : `A new run of version ${fresh.version}`}:{' '}
        {wordOf(fresh.status).toLowerCase()}, <Ago at={fresh.created_at_ms} />
      </p>
      <Button onClick={() => void openRun(fresh.id)}>Show</Button>
      <Button kind="bare" icon="close" iconOnly onClick={() => setDismissed(fresh.id)}>
        Dismiss
      </Button>
    </div>
  )
}
