// The actions for the chosen runs. An action that does not fit them stays, and shows why.

import { useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import type { RunSummary } from '../../api/schemas'
import { isEnded } from '../../run'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { copyText } from '../../ui/copy'
import { navigate } from '../../ui/navigation'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf } from '../../ui/words'
import { RerunMany } from './RerunMany'

const AT_ONCE = 4

export function Bulk({
  runs,
  shown,
  onAll,
  onNone,
  onDone,
}: {
  runs: readonly RunSummary[]
  /** The number of runs in the list. */
  shown: number
  onAll: () => void
  onNone: () => void
  onDone: () => void
}): ReactElement | null {
  const mayNot = useReadOnly()
  const [done, setDone] = useState<number | null>(null)
  const [asks, setAsks] = useState<'cancel' | 'again' | null>(null)
  if (!runs.length) return null
  const open = runs.filter((run) => !isEnded(run.status))
  const [older, newer] = runs.length === 2 ? [...runs].sort((a, b) => a.created_at_ms - b.created_at_ms) : []
  const ended = runs.filter((run) => isEnded(run.status) && run.parent_run_id === null)
  const all = async (
    what: string,
    some: readonly RunSummary[],
    act: (id: string) => Promise<unknown>,
  ): Promise<void> => {
    setDone(0)
    const { well, wrong } = await eachOf(some, act, setDone)
    setDone(null)
    if (wrong.length) toast(`${what}: ${well} of ${some.length}. ${wrong[0]!.slice(0, 200)}`, 'err')
    else toast(`${what}: ${well}`, 'ok')
    onDone()
    onNone()
  }
  const why = mayNot ?? (done === null ? null : `${done} done`)
  return (
    <>
      <div className="bulk" role="toolbar" aria-label="Chosen runs">
        <b aria-live="polite">
          {done === null ? `${runs.length} of ${shown} chosen` : `${done} of ${runs.length} done`}
        </b>
        {runs.length < shown ? (
          <button type="button" className="bulk__all" onClick={onAll}>
            all {shown}
          </button>
        ) : null}
        <span className="bulk__line" />
        <Button
          kind="bare"
          icon="redo"
          changes
          why={why ?? (ended.length ? null : 'None has ended, or another run started them')}
          onClick={() => setAsks('again')}
        >
          {ended.length
            ? `Run again${ended.length < runs.length ? ` (${ended.length})` : ''}`
            : 'Run again, none has ended'}
        </Button>
        <Button
          kind="bare"
          icon="stop"
          changes
          why={why ?? (open.length ? null : 'None is open')}
          onClick={() => setAsks('cancel')}
        >
          {open.length ? `Cancel${open.length < runs.length ? ` (${open.length})` : ''}` : 'Cancel, none is open'}
        </Button>
        {older && newer && older.workflow === newer.workflow ? (
          <Button kind="bare" icon="compare" onClick={() => navigate(`/runs/${newer.id}?with=${older.id}`)}>
            Compare
          </Button>
        ) : null}
        <Button
          kind="bare"
          icon="copy"
          onClick={() => void copyText(runs.map((run) => run.id).join('\n'), 'Copied ids')}
        >
          Copy ids
        </Button>
        <Button kind="bare" icon="close" iconOnly onClick={onNone}>
          Choose none
        </Button>
      </div>
      {asks === 'again' ? (
        <RerunMany
          runs={ended.map((run) => run.id)}
          onDone={() => (onDone(), onNone())}
          onClose={() => setAsks(null)}
        />
      ) : null}
      <Dialog
        title={open.length === 1 ? 'Cancel a run' : `Cancel ${open.length} runs`}
        open={asks === 'cancel'}
        onClose={() => setAsks(null)}
        foot={
          <Button
            kind="danger"
            changes
            onClick={() => {
              setAsks(null)
              void all('Cancelled', open, (id) => api.cancelRun(id, 'cancelled in the list of runs'))
            }}
          >
            {open.length === 1 ? 'Cancel it' : `Cancel ${open.length} runs`}
          </Button>
        }
      >
        <p>Their cleanups run first. What they have sent to others stays sent.</p>
      </Dialog>
    </>
  )
}

/** Act on each, some at once. One that fails stops none of the others. */
async function eachOf(
  runs: readonly RunSummary[],
  act: (id: string) => Promise<unknown>,
  report: (done: number) => void,
): Promise<{ well: number; wrong: string[] }> {
  const wrong: string[] = []
  let [next, well] = [0, 0]
  const work = async (): Promise<void> => {
    while (next < runs.length) {
      const run = runs[next++]!
      await act(run.id).then(
        () => well++,
        (error: unknown) => wrong.push(messageOf(error)),
      )
      report(well + wrong.length)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return { well, wrong }
}
