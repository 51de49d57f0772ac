// A new run that continues from an event of this one: results before it are reused, and one output can be replaced. Inside an agent it
// is a rewind, beside the Tape.

import { useMemo, useState, type ReactElement } from 'react'
import { api, ApiError } from '../../net/api'
import type { Document, RunView } from '../../api/types'
import { placeOf } from '../../run'
import { readJson } from '../../forms/fields/JsonText'
import { printJson } from '../../forms/json/print'
import { navigate } from '../../ui/navigation'
import { nameOf } from '../../document/document'
import { runStore } from '../../state/live'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { messageOf } from '../../ui/words'
import './run.css'

const NODES_MAX = 500

export function ForkDialog({
  run,
  doc,
  seq,
  onClose,
}: {
  run: RunView
  doc: Document | null
  seq: number
  onClose: () => void
}): ReactElement {
  const [at, setAt] = useState(seq)
  const [key, setKey] = useState('')
  const [text, setText] = useState('')
  const [trouble, setTrouble] = useState<{ message: string; hint: string; seq: number | null } | null>(null)
  const [busy, setBusy] = useState(false)
  // What had been put out by then: of the newest first, as those are likely meant.
  const done = useMemo(() => {
    const { timeline } = runStore.getState()
    return [...timeline.seek(at).nodes.values()]
      .filter((node) => node.status === 'succeeded' && !node.region)
      .sort((a, b) => b.lastSeq - a.lastSeq)
      .slice(0, NODES_MAX)
  }, [at])
  const read = readJson(text)
  const why = busy ? 'Starting' : key && !read.ok ? `Invalid JSON: ${read.why}` : null
  const choose = (next: string): void => {
    setKey(next)
    const node = done.find((each) => each.key === next)
    setText(node?.output === undefined ? '' : printJson(node.output))
  }
  const go = async (): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    try {
      const made = await api.fork(run.id, at, key ? { [key]: read.ok ? (read.value ?? null) : null } : {})
      onClose()
      navigate(`/runs/${made.run}`)
    } catch (error) {
      const last = error instanceof ApiError && typeof error.problem.seq === 'number' ? error.problem.seq : null
      setTrouble({
        message: messageOf(error),
        hint: error instanceof ApiError ? error.hint : '',
        seq: last !== at ? last : null,
      })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title="Fork run"
      open
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" icon="play" data-testid="fork" why={why} onClick={() => void go()}>
            {`Fork at event ${at}`}
          </Button>
        </>
      }
    >
      <div className="rerun">
        <p>Starts a new run that continues from event {at} of this one. This run does not change.</p>
        <label className="rerun__field">
          <span className="label">Override output</span>
          <select value={key} data-testid="fork-node" onChange={(event) => choose(event.target.value)}>
            <option value="">None</option>
            {done.map((node) => {
              const where = placeOf(node.path, doc)
              return (
                <option
                  key={node.key}
                  value={node.key}
                >{`${doc ? nameOf(doc, node.block) : node.block}${where ? ` in ${where}` : ''}`}</option>
              )
            })}
          </select>
        </label>
        {key ? (
          <label className="rerun__field">
            <span className="label">Output (JSON)</span>
            <textarea
              className="mono"
              rows={8}
              spellCheck={false}
              data-testid="fork-output"
              value={text}
              aria-invalid={read.ok ? undefined : true}
              onChange={(event) => setText(event.target.value)}
            />
          </label>
        ) : null}
        {trouble ? (
          <div className="notice" data-tone="err" role="alert">
            <span>
              {trouble.message} {trouble.hint}
            </span>
            {trouble.seq === null || trouble.seq < 1 ? null : (
              <Button onClick={() => (setAt(trouble.seq!), setKey(''), setTrouble(null))}>
                Use event {trouble.seq}
              </Button>
            )}
          </div>
        ) : null}
      </div>
    </Dialog>
  )
}
