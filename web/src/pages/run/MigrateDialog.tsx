// Moves an open run to another version of its workflow, when what it has done fits that version.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api, ApiError } from '../../net/api'
import type { RunView } from '../../api/types'
import { nodeText } from '../../watch/events/describe'
import { runStore } from '../../state/live'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'

const LISTED = 50

interface Misfit {
  node: string | null
  why: string
}

export function MigrateDialog({
  run,
  version,
  onClose,
}: {
  run: RunView
  version: number
  onClose: () => void
}): ReactElement {
  const newest = useData(async () => (await api.workflow(run.workflow)).newest, [run.workflow])
  const [chosen, setChosen] = useState<number | null>(null)
  const [trouble, setTrouble] = useState<{
    version: number
    message: string
    hint: string
    misfits: readonly Misfit[]
  } | null>(null)
  const [busy, setBusy] = useState(false)
  const doc = useStore(runStore, (s) => s.doc)
  const to = chosen ?? newest.value
  const others = Array.from({ length: Math.min(newest.value ?? 0, LISTED) }, (_, i) => newest.value! - i).filter(
    (each) => each !== version,
  )
  const go = async (): Promise<void> => {
    if (to === null) return
    setBusy(true)
    setTrouble(null)
    try {
      const { moved } = await api.migrate(run.id, to)
      toast(
        moved ? `The run now uses version ${to}.` : `The run moves to version ${to} when its worker confirms it.`,
        moved ? 'ok' : 'wait',
      )
      onClose()
    } catch (error) {
      setTrouble({
        version: to,
        message: messageOf(error),
        hint: error instanceof ApiError ? error.hint : '',
        misfits: error instanceof ApiError ? misfitsOf(error.problem.conflicts) : [],
      })
    } finally {
      setBusy(false)
    }
  }
  const why = busy
    ? 'Moving'
    : newest.loading
      ? 'Loading versions'
      : !others.length
        ? 'There is no other version'
        : to === version
          ? 'Choose another version'
          : null
  return (
    <Dialog
      title="Move to another version"
      open
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" data-testid="migrate" why={why} onClick={() => void go()}>
            {to === null ? 'Move' : `Move to version ${to}`}
          </Button>
        </>
      }
    >
      <div className="rerun">
        <p>
          This run uses version {version} of {run.workflow}. It continues with the other version; the steps it has
          completed must match that version.
        </p>
        {others.length ? (
          <label className="rerun__field">
            <span className="label">Version</span>
            <select value={to ?? ''} onChange={(event) => setChosen(Number(event.target.value))}>
              {to === version ? <option value={version}>{`${version} (current)`}</option> : null}
              {others.map((each) => (
                <option key={each} value={each}>
                  {each === newest.value ? `${each} (newest)` : each}
                </option>
              ))}
            </select>
          </label>
        ) : null}
        {newest.error ? (
          <p className="notice" data-tone="err" role="alert">
            {newest.error.message}
          </p>
        ) : null}
        {trouble ? (
          <div className="notice" data-tone="err" role="alert">
            <span>
              {trouble.misfits.length ? `This run does not fit version ${trouble.version}.` : trouble.message}{' '}
              {trouble.hint}
            </span>
            {trouble.misfits.length ? (
              <ul>
                {trouble.misfits.map((each, i) => (
                  <li key={i}>
                    {each.node ? (
                      <>
                        <b>{nodeText(each.node, doc)}</b>:{' '}
                      </>
                    ) : null}
                    {each.why}
                  </li>
                ))}
              </ul>
            ) : null}
          </div>
        ) : null}
      </div>
    </Dialog>
  )
}

function misfitsOf(value: unknown): Misfit[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown) => {
    const { node, why } = (item ?? {}) as { node?: unknown; why?: unknown }
    return typeof why === 'string' ? [{ node: typeof node === 'string' ? node : null, why }] : []
  })
}
