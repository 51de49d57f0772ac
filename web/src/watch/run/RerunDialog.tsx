// Before a run is repeated: which blocks will run, and which results are reused.

import { useState, type ReactElement } from 'react'
import { api, ApiError } from '../../net/api'
import type { RunAccepted } from '../../api/schemas'
import type { Document, RunView } from '../../api/types'
import { navigate } from '../../ui/navigation'
import { nameOf } from '../../document/document'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'

interface RerunDialogProps {
  run: RunView
  doc: Document
  ended: boolean
  /** Block to begin with; null: all of it. */
  from: string | null
  onClose: () => void
}

export function RerunDialog({ run, doc, ended, from, onClose }: RerunDialogProps): ReactElement {
  const [start, setStart] = useState(from)
  const [trouble, setTrouble] = useState('')
  const [busy, setBusy] = useState(false)
  const plan = useData(
    async () => (start === null || !ended ? null : api.rerunPreview(run.id, start)),
    [run.id, start, ended],
  )
  const go = async (): Promise<void> => {
    setBusy(true)
    setTrouble('')
    try {
      const accepted = ended ? await api.rerun(run.id, start ?? undefined) : await startAnew(run, doc)
      onClose()
      navigate(`/runs/${accepted.run}`)
    } catch (error) {
      setTrouble(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  const list = (title: string, ids: readonly string[]): ReactElement | null =>
    ids.length ? (
      <div>
        <dt>{title}</dt>
        <dd>{ids.map((id) => nameOf(doc, id)).join(', ')}</dd>
      </div>
    ) : null
  return (
    <Dialog
      title="Run again"
      open
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            icon="play"
            why={
              busy
                ? 'Starting'
                : start !== null && plan.error
                  ? plan.error.message
                  : start !== null && plan.loading
                    ? 'Loading'
                    : null
            }
            onClick={() => void go()}
          >
            Run
          </Button>
        </>
      }
    >
      <div className="rerun">
        {from !== null ? (
          <fieldset className="rerun__choice">
            <legend className="visually-hidden">Run again from</legend>
            <label>
              <input type="radio" name="rerun" checked={start === from} onChange={() => setStart(from)} />
              From {nameOf(doc, from)}
            </label>
            <label>
              <input type="radio" name="rerun" checked={start === null} onChange={() => setStart(null)} />
              From the start
            </label>
          </fieldset>
        ) : null}
        {start === null ? <p>Starts a new run of the same workflow with the same input.</p> : null}
        {start !== null && plan.value ? (
          <dl className="readable">
            {list('Runs again', plan.value.again)}
            {list('Reused', plan.value.reused)}
            {list('Stays skipped', plan.value.skipped)}
          </dl>
        ) : null}
        {start !== null && plan.error ? (
          <p className="notice" data-tone="err" role="alert">
            {plan.error.message}
          </p>
        ) : null}
        {trouble ? (
          <p className="notice" data-tone="err" role="alert">
            {trouble}
          </p>
        ) : null}
      </div>
    </Dialog>
  )
}

/** The same once more while the run is open: as the version or the draft it is of, so that it belongs to it; a draft that has
 * been edited since, or is gone, leaves the document. */
async function startAnew(run: RunView, doc: Document): Promise<RunAccepted> {
  if (run.version !== null) return api.startRun(run.workflow, run.input, { version: run.version })
  if (!run.draft_id || !run.draft_rev) return api.startDocument(doc, run.input)
  try {
    return await api.runDraft(run.draft_id, run.input, { rev: run.draft_rev })
  } catch (error) {
    if (error instanceof ApiError && (error.status === 409 || error.status === 404))
      return api.startDocument(doc, run.input)
    throw error
  }
}
