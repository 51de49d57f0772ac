// The dialog that adds or changes what is stored, with the server's reasons at the field they are about.

import { useState, type ReactElement, type ReactNode } from 'react'
import { ApiError } from '../../net/api'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { messageOf, sentence } from '../../ui/words'
import { Refused } from './ListPage'

/** `field`: the one it is about, null for all of it. */
export interface Refusal {
  field: string | null
  message: string
}

const BY_CODE: Record<string, string> = {
  id_invalid: 'id',
  workflow_not_found: 'workflow',
  version_not_found: 'version',
  cron_invalid: 'cron',
  timezone_unknown: 'tz',
  input_invalid: 'input',
  trigger_not_found: 'trigger',
  secret_name_invalid: 'name',
  secret_in_environment: 'name',
}

export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof ApiError)) return { field: null, message: messageOf(error) }
  const { pointer } = error.problem
  const field = BY_CODE[error.code] ?? (typeof pointer === 'string' ? (pointer.split('/')[1] ?? null) : null)
  return {
    field,
    message: [
      sentence(error.message),
      error.hint && sentence(error.hint),
      ...error.diagnostics.map((each) => sentence(each.message)),
    ]
      .filter(Boolean)
      .join(' '),
  }
}

interface EditDialogProps {
  title: string
  /** The label of its button. */
  act: string
  testId: string
  /** Why it cannot be sent yet. */
  why: string | null
  /** Resolves when it is stored; an error it raises is shown. */
  onSend: () => Promise<void>
  onClose: () => void
  /** Fields of this form, whose own reasons are shown with them; others stand below. */
  fields: readonly string[]
  children: (found: Refusal | null) => ReactNode
}

export function EditDialog({
  title,
  act,
  testId,
  why,
  onSend,
  onClose,
  fields,
  children,
}: EditDialogProps): ReactElement {
  const [busy, setBusy] = useState(false)
  const [tried, setTried] = useState(false)
  const [found, setFound] = useState<Refusal | null>(null)
  const send = async (): Promise<void> => {
    setTried(true)
    if (busy || why) return
    setBusy(true)
    setFound(null)
    try {
      await onSend()
      onClose()
    } catch (error) {
      setFound(refusalOf(error))
    } finally {
      setBusy(false)
    }
  }
  const elsewhere = found && (found.field === null || !fields.includes(found.field)) ? found.message : null
  return (
    <Dialog
      title={title}
      open
      onClose={onClose}
      foot={
        <>
          {tried && why ? (
            <span className="triggerform__why" role="status">
              {why}
            </span>
          ) : null}
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            data-testid={`${testId}-send`}
            why={busy ? 'Saving' : tried ? why : null}
            onClick={() => void send()}
          >
            {act}
          </Button>
        </>
      }
    >
      <form
        className="triggerform"
        data-testid={testId}
        noValidate
        onInput={() => setFound(null)}
        onSubmit={(event) => (event.preventDefault(), void send())}
      >
        {children(found)}
        <Refused error={elsewhere} />
        <button type="submit" hidden />
      </form>
    </Dialog>
  )
}
