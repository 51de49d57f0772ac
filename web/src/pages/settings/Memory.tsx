// What agents remember between runs: the conversations, their turns, and a way to delete one.

import { useState, type ReactElement } from 'react'
import type { MemoryHead } from '../../api/schemas'
import { sizeText } from '../../net/files'
import { memory, type Turn } from '../../net/memory'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { EmptyState } from '../../ui/EmptyState'
import { Link } from '../../ui/navigation'
import { useMayNot } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { wordsOf } from '../../ui/words'
import { ListState } from '../parts'
import { DeleteDialog } from './DeleteDialog'
import { ACTIONS, ListPage, type Column } from './ListPage'
import './memory.css'

const SHOWN_MAX = 200 // what the server lists

type Shown = { act: 'show' | 'delete'; of: MemoryHead }

const turnsText = (count: number): string => `${count} ${count === 1 ? 'turn' : 'turns'}`

export function Memory(): ReactElement {
  const stored = useData(memory.list, [])
  const [shown, setShown] = useState<Shown | null>(null)
  const close = (): void => setShown(null)
  const mayNot = useMayNot('editor')
  const rows = stored.value ?? []
  const columns: Column<MemoryHead>[] = [
    { name: 'Key', cell: ({ key }) => <code>{key}</code> },
    {
      name: 'Belongs to',
      cell: ({ workflow, scope }) =>
        workflow ? <Link to={`/runs?workflow=${encodeURIComponent(workflow)}`}>{workflow}</Link> : `Scope ${scope}`,
    },
    { name: 'Size', cell: ({ turns, bytes }) => `${turnsText(turns)}, ${sizeText(bytes)}` },
    { name: 'Last turn', cell: ({ last_at_ms: last }) => <Ago at={last} /> },
    {
      name: ACTIONS,
      cell: (of) => (
        <>
          <Button aria-label={`Show ${of.key}`} onClick={() => setShown({ act: 'show', of })}>
            Show
          </Button>
          <Button icon="trash" iconOnly why={mayNot} onClick={() => setShown({ act: 'delete', of })}>
            {`Delete ${of.key}`}
          </Button>
        </>
      ),
    },
  ]
  return (
    <ListPage
      id="memory"
      title="Memory of agents"
      about="Conversations that agents with a memory key remember between runs. A turn is a question and its answer."
      data={stored}
      label="Conversations"
      widths="memory__row"
      columns={columns}
      rows={rows}
      keyOf={({ workflow, scope, key }) => `${workflow}\0${scope}\0${key}`}
      empty="No conversation is remembered"
    >
      {rows.length < SHOWN_MAX ? null : (
        <p className="quiet">The {SHOWN_MAX} conversations with the latest turns are listed.</p>
      )}
      {shown?.act === 'show' ? <ConversationDialog of={shown.of} onClose={close} /> : null}
      {shown?.act === 'delete' ? (
        <DeleteDialog
          what={`the conversation ${shown.of.key}`}
          act={() => memory.delete(shown.of)}
          onDone={stored.reload}
          onClose={close}
        >
          <p>
            Agents no longer remember it: {turnsText(shown.of.turns)} of {ownerText(shown.of)}. Runs keep what they have
            read.
          </p>
        </DeleteDialog>
      ) : null}
    </ListPage>
  )
}

const ownerText = ({ workflow, scope }: MemoryHead): string =>
  workflow ? `the workflow ${workflow}` : `the scope ${scope}`

function ConversationDialog({ of, onClose }: { of: MemoryHead; onClose: () => void }): ReactElement {
  const found = useData(() => memory.turns(of), [of])
  return (
    <Dialog title={`Conversation ${of.key}`} open wide onClose={onClose}>
      {found.value?.length ? (
        <ol className="memory__turns" data-testid="memory-turns">
          {found.value.map((turn) => (
            <TurnItem key={`${turn.run} ${turn.at_ms}`} turn={turn} />
          ))}
        </ol>
      ) : (
        <ListState data={found} empty>
          <EmptyState title="It was deleted" />
        </ListState>
      )}
    </Dialog>
  )
}

function TurnItem({ turn }: { turn: Turn }): ReactElement {
  return (
    <li>
      <p className="label">
        <Ago at={turn.at_ms} />, <Link to={`/runs/${encodeURIComponent(turn.run)}`}>run</Link>
      </p>
      <dl className="memory__messages">
        {turn.messages.map((message, n) => (
          <div key={n}>
            <dt>{wordsOf(message.role)}</dt>
            <dd>{message.text}</dd>
          </div>
        ))}
      </dl>
    </li>
  )
}
