// Before a run is repeated, or continues with the draft: which blocks will run, and which results are reused.

import { useState, type ReactElement } from 'react'
import { api, ApiError } from '../../net/api'
import type { Continuation, RunAccepted } from '../../api/schemas'
import type { Document, RunView } from '../../api/types'
import { flush } from '../../state/doc'
import { navigate } from '../../ui/navigation'
import { nameOf } from '../../document/document'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { Fates } from './Fates'
import './run.css'

interface RerunDialogProps {
  run: RunView
  doc: Document
  ended: boolean
  /** Block to begin with; null: all of it. */
  from: string | null
  /** Begin with the choice of the draft. */
  draft?: boolean
  onClose: () => void
  onStarted?: (run: string) => void
}

interface Others {
  draft?: Continuation
  active?: Continuation
}

export function RerunDialog({
  run,
  doc,
  ended,
  from,
  draft = false,
  onClose,
  onStarted = (id) => navigate(`/runs/${id}`),
}: RerunDialogProps): ReactElement {
  const [start, setStart] = useState(from)
  const [version, setVersion] = useState<'draft' | 'active' | null>(draft && ended ? 'draft' : null)
  const [trouble, setTrouble] = useState('')
  const [busy, setBusy] = useState(false)
  const plan = useData(
    async () => (start === null || !ended ? null : api.rerunPreview(run.id, start)),
    [run.id, start, ended],
  )
  // Definitions other than the run's own: its draft, and the version that is active now.
  const others = useData(async (): Promise<Others> => {
    if (!ended) return {}
    await flush()
    const found = await othersOf(run)
    if (draft && !found.draft) setVersion(null)
    return found
  }, [run.id, ended])
  const other = version === null ? undefined : others.value?.[version]
  const go = async (): Promise<void> => {
    setBusy(true)
    setTrouble('')
    try {
      const accepted = !ended
        ? await startAnew(run, doc)
        : version === null
          ? await api.rerun(run.id, start ?? undefined)
          : await api.continueRun(run.id, version)
      onClose()
      onStarted(accepted.run)
    } catch (error) {
      setTrouble(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  const choose = (block: string | null): void => (setVersion(null), setStart(block))
  const choice = (label: string, checked: boolean, onChange: () => void): ReactElement => (
    <label>
      <input type="radio" name="rerun" checked={checked} onChange={onChange} />
      {label}
    </label>
  )
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
                : version === null && start !== null && plan.error
                  ? plan.error.message
                  : (version === null && start !== null && plan.loading) || (version !== null && !other)
                    ? 'Loading'
                    : null
            }
            onClick={() => void go()}
          >
            {version === null ? 'Run' : 'Continue'}
          </Button>
        </>
      }
    >
      <div className="rerun">
        {from !== null || others.value?.draft || others.value?.active ? (
          <fieldset className="rerun__choice">
            <legend className="visually-hidden">Run again from</legend>
            {from !== null
              ? choice(`From ${nameOf(doc, from)}`, version === null && start === from, () => choose(from))
              : null}
            {choice('From the start', version === null && start === null, () => choose(null))}
            {others.value?.draft
              ? choice('Continue with the draft', version === 'draft', () => setVersion('draft'))
              : null}
            {others.value?.active
              ? choice(`Continue with version ${others.value.active.version}`, version === 'active', () =>
                  setVersion('active'),
                )
              : null}
          </fieldset>
        ) : null}
        {other ? (
          <>
            <p>What is unchanged is kept: it is not run, or paid, again.</p>
            <Fates of={other} />
          </>
        ) : null}
        {version === null && start === null ? <p>Starts a new run of the same workflow with the same input.</p> : null}
        {version === null && start !== null && plan.value ? (
          <dl className="readable">
            {list('Runs again', plan.value.again)}
            {list('Reused', plan.value.reused)}
            {list('Stays skipped', plan.value.skipped)}
          </dl>
        ) : null}
        {version === null && start !== null && plan.error ? (
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

/** Without a draft, or for a definition with errors, there is nothing to continue with. The run of a document belongs to no draft, whatever
 * its name. */
async function othersOf(run: RunView): Promise<Others> {
  const drafts = await api.drafts()
  const stored = run.version !== null
  const is = drafts.some(
    (each) => each.id === run.draft_id || (stored && (each.base_name ?? each.name) === run.workflow),
  )
  const [draft, active] = await Promise.allSettled([
    is ? api.continuation(run.id, 'draft') : Promise.reject(new Error('no draft')),
    run.version !== null ? api.continuation(run.id, 'active') : Promise.reject(new Error('no version')),
  ])
  return {
    ...(draft.status === 'fulfilled' ? { draft: draft.value } : {}),
    ...(active.status === 'fulfilled' && active.value.version !== run.version ? { active: active.value } : {}),
  }
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
