// What schedules and webhooks have in common on the page: the section, a row that opens, a switch, and where it belongs.

import { useState, type ReactElement, type ReactNode } from 'react'
import { Link } from '../../ui/navigation'
import { openWorkflow } from '../../actions/open'
import { Button } from '../../ui/Button'
import { Ago } from '../../ui/Ago'
import { Dialog } from '../../ui/Dialog'
import { EmptyState } from '../../ui/EmptyState'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf } from '../../ui/words'
import { ListState, Stale, usePolled } from '../parts'

const POLL_MS = 15_000

export interface TriggerDialogProps<T> {
  /** null: a new one. */
  edited: T | null
  ids: ReadonlySet<string>
  onDone: () => void
  onClose: () => void
}

interface TriggerSectionProps<T> {
  what: 'schedule' | 'webhook'
  /** Whether who is signed in may add one. */
  mayAdd: boolean
  load: () => Promise<T[]>
  row: (trigger: T, onChange: () => void, onEdit: () => void) => ReactElement
  dialog: (props: TriggerDialogProps<T>) => ReactElement
}

/** All triggers of one kind, with the dialog that adds or edits one. */
export function TriggerSection<T extends { id: string }>({
  what,
  mayAdd,
  load,
  row,
  dialog,
}: TriggerSectionProps<T>): ReactElement {
  const data = usePolled(load, [], POLL_MS)
  const [form, setForm] = useState<T | 'new' | null>(null)
  const kind = what === 'schedule' ? 'Schedule' : 'Webhook'
  const add = mayAdd ? (
    <Button icon="plus" changes onClick={() => setForm('new')}>
      {`New ${what}`}
    </Button>
  ) : null
  return (
    <section aria-labelledby={`set-${what}s`} id={`${what}s`}>
      <div className="settings__head">
        <h2 id={`set-${what}s`}>{kind}s</h2>
        {data.value?.length ? add : null}
      </div>
      <Stale data={data} />
      {data.value?.length ? (
        <ul className="rows triggers">{data.value.map((each) => row(each, data.reload, () => setForm(each)))}</ul>
      ) : (
        <ListState data={data} empty>
          <EmptyState icon={what} title={`No ${what}s`}>
            <p>
              Publish a workflow that starts with a {kind} block{mayAdd ? `, or create a ${what} here` : ''}.
            </p>
            {add}
          </EmptyState>
        </ListState>
      )}
      {form === null
        ? null
        : dialog({
            edited: form === 'new' ? null : form,
            ids: new Set(data.value?.map((each) => each.id)),
            onDone: data.reload,
            onClose: () => setForm(null),
          })}
    </section>
  )
}

/** When a trigger last started something, with a link to the run if there was one. `none`: what is said before the first. */
export function LastRun({ at, run, none }: { at: number | null; run: string | null; none: string }): ReactElement {
  if (at === null) return <span className="quiet">{none}</span>
  return (
    <span>
      Last{' '}
      {run ? (
        <Link to={`/runs/${run}`}>
          <Ago at={at} />
        </Link>
      ) : (
        <Ago at={at} />
      )}
    </span>
  )
}

interface TriggerRowProps {
  id: string
  title: ReactNode
  /** Under the title, always to be seen. */
  facts: ReactNode
  enabled: boolean
  error: string | null
  onSwitch: (on: boolean) => Promise<unknown>
  actions?: ReactNode
  /** What opens below. */
  children: ReactNode
}

export function TriggerRow({
  id,
  title,
  facts,
  enabled,
  error,
  onSwitch,
  actions,
  children,
}: TriggerRowProps): ReactElement {
  const [open, setOpen] = useState(false)
  const [busy, setBusy] = useState(false)
  const why = useReadOnly()
  const turn = async (): Promise<void> => {
    if (busy || why) return
    setBusy(true)
    try {
      await onSwitch(!enabled)
    } catch (reason) {
      toast(messageOf(reason), 'err')
    } finally {
      setBusy(false)
    }
  }
  return (
    <li className="trigger" data-testid={`trigger-${id}`} data-enabled={enabled}>
      <div className="trigger__head">
        <button
          type="button"
          className="trigger__open"
          aria-expanded={open}
          aria-label={`Details of ${id}`}
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? 'down' : 'chevron'} size={14} />
        </button>
        <div className="trigger__words">
          <p className="trigger__title">{title}</p>
          <div className="trigger__facts">{facts}</div>
        </div>
        <div className="trigger__actions">
          {actions}
          <button
            type="button"
            role="switch"
            aria-checked={enabled}
            aria-label={`${id} enabled`}
            aria-disabled={why ? true : undefined}
            title={why ?? undefined}
            className="onoff"
            onClick={() => void turn()}
          >
            <span className="onoff__knob" aria-hidden="true" />
            {enabled ? 'On' : 'Off'}
          </button>
        </div>
      </div>
      {error ? (
        <p className="notice" data-tone="err" role="status">
          {error}
        </p>
      ) : null}
      {open ? <div className="trigger__body">{children}</div> : null}
    </li>
  )
}

/** The workflow, and what makes it start: the block that declares the trigger, or its name in the settings. */
export function Belongs({
  id,
  workflow,
  block,
  version,
  origin,
}: {
  id: string
  workflow: string
  block: string | null
  version: number | null
  origin: string
}): ReactElement {
  const why = useReadOnly()
  return (
    <>
      <Link to={`/runs?workflow=${encodeURIComponent(workflow)}`}>{workflow}</Link>
      {version === null ? null : <span className="label"> v{version}</span>}
      {origin === 'document' && block && why ? (
        <span className="quiet">block {block}</span>
      ) : origin === 'document' && block ? (
        <button type="button" className="trigger__block" onClick={() => void openWorkflow(workflow)}>
          block {block}
        </button>
      ) : (
        <code className="trigger__id">{id}</code>
      )}
    </>
  )
}

/** Edit and delete, for triggers made in the settings. Those of a document are changed in the document. */
export function OwnActions({
  what,
  id,
  note,
  onEdit,
  onDelete,
}: {
  what: string
  id: string
  note: string
  onEdit: () => void
  onDelete: () => Promise<unknown>
}): ReactElement {
  const [asking, setAsking] = useState(false)
  const remove = async (): Promise<void> => {
    setAsking(false)
    try {
      await onDelete()
      toast(`Deleted ${what} ${id}`, 'ok')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <>
      <Button icon="edit" iconOnly changes onClick={onEdit}>{`Edit ${id}`}</Button>
      <Button icon="trash" iconOnly changes onClick={() => setAsking(true)}>{`Delete ${id}`}</Button>
      <Dialog
        title={`Delete ${what} ${id}?`}
        open={asking}
        onClose={() => setAsking(false)}
        foot={
          <>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
            <Button kind="danger" data-testid="trigger-delete" onClick={() => void remove()}>
              Delete
            </Button>
          </>
        }
      >
        <p>{note} Its runs are kept.</p>
      </Dialog>
    </>
  )
}
