// Before many runs are run again, or continue with the active version: what would be repeated, counted over all of them.

import '../../watch/run/run.css'
import { useState, type ReactElement } from 'react'
import type { RerunOfMany } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'
import { repeatedBy, rerunAll } from './rerunMany'
import '../../watch/run/run.css'

const SHOWN = 12

export function RerunMany({
  runs,
  onDone,
  onClose,
}: {
  /** Ids of runs that have ended. */
  runs: readonly string[]
  onDone: (made: readonly RerunOfMany[]) => void
  onClose: () => void
}): ReactElement {
  const [version, setVersion] = useState<'active' | null>(null)
  const [busy, setBusy] = useState(false)
  const preview = useData(() => rerunAll(runs, version, true), [version])
  const found = preview.value ?? []
  const refused = found.filter((each) => each.error)
  const starts = found.length - refused.length
  const blocks = repeatedBy(found)
  const go = async (): Promise<void> => {
    setBusy(true)
    try {
      const made = await rerunAll(
        found.filter((each) => !each.error).map((each) => each.source),
        version,
      )
      const wrong = made.filter((each) => each.error)
      const well = made.length - wrong.length
      if (wrong.length) toast(`Started again: ${well} of ${made.length}. ${wrong[0]!.error.slice(0, 200)}`, 'err')
      else toast(`Started again: ${well}`, 'ok')
      onDone(made)
      onClose()
    } catch (error) {
      toast(messageOf(error), 'err')
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={runs.length === 1 ? 'Run again' : `Run ${runs.length} runs again`}
      open
      onClose={onClose}
      foot={
        <Button
          kind="primary"
          icon="redo"
          changes
          why={busy ? 'Starting' : preview.value === null ? 'Loading' : starts ? null : 'None of them can run again'}
          onClick={() => void go()}
        >
          {version ? `Continue ${starts}` : `Run ${starts} again`}
        </Button>
      }
    >
      <div className="rerun">
        <fieldset className="rerun__choice">
          <legend className="visually-hidden">Run again</legend>
          <label>
            <input type="radio" name="many" checked={version === null} onChange={() => setVersion(null)} />
            From the start, each as it was
          </label>
          <label>
            <input type="radio" name="many" checked={version !== null} onChange={() => setVersion('active')} />
            Continue with the active version: what is unchanged is kept
          </label>
        </fieldset>
        {preview.value === null ? (
          <ListState data={preview} empty={false}>
            {null}
          </ListState>
        ) : (
          <dl className="readable" data-testid="repeated">
            {blocks.slice(0, SHOWN).map((block) => (
              <div key={block.name}>
                <dt>{block.name}</dt>
                <dd>
                  {block.runs ? `runs in ${block.runs} of ${starts}` : `may run in ${block.may} of ${starts}`}
                  {block.runs && block.may ? `, may run in ${block.may}` : ''}
                  {block.writes ? ', changes something outside' : ''}
                </dd>
              </div>
            ))}
            {blocks.length > SHOWN ? <p className="quiet">{`${blocks.length - SHOWN} more blocks`}</p> : null}
            {blocks.length || !starts ? null : <p>Nothing is repeated: all of it is kept.</p>}
          </dl>
        )}
        {refused.length ? (
          <p className="notice" data-tone="err" role="alert">
            {`${refused.length} cannot: ${refused[0]!.error}`}
          </p>
        ) : null}
      </div>
    </Dialog>
  )
}
