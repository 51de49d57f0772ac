// What agents remember between runs: the conversations, what was said in each, and a way to delete one.

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
import './memory.css'

const SHOWN_MAX = 200 // what the server lists

type Shown = { act: 'show' | 'delete'; of: MemoryHead }

const turnsText = (count: number): string => `${count} ${count === 1 ? 'turn' : 'turns'}`

export function Memory(): ReactElement {
  const stored = useData(memory.list, [])
  const [shown, setShown] = useState<Shown | null>(null)
  const close = (): void => setShown(null)
  return (
    <section aria-labelledby="set-memory" data-testid="memory">
      <h2 id="set-memory">Memory of agents</h2>
      <p className="quiet">
        Conversations that agents with a memory key remember between runs. A turn is a question and its answer.
      </p>
      {stored.value?.length ? (
        <>
          <div className="settings__env" role="table" aria-label="Conversations">
            <div role="row" className="settings__row memory__row label">
              {['Key', 'Belongs to', 'Size', 'Last turn', 'Actions'].map((name) => (
                <span key={name} role="columnheader" className={name === 'Actions' ? 'visually-hidden' : undefined}>
                  {name}
                </span>
              ))}
            </div>
            {stored.value.map((each) => (
              <Row
                key={`${each.workflow}\0${each.scope}\0${each.key}`}
                conversation={each}
                onShow={() => setShown({ act: 'show', of: each })}
                onDelete={() => setShown({ act: 'delete', of: each })}
              />
            ))}
          </div>
          {stored.value.length < SHOWN_MAX ? null : (
            <p className="quiet">The {SHOWN_MAX} conversations with the latest turns are listed.</p>
          )}
        </>
      ) : (
        <ListState data={stored} empty>
          <EmptyState title="No conversation is remembered" />
        </ListState>
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
    </section>
  )
}

const ownerText = ({ workflow, scope }: MemoryHead): string =>
  workflow ? `the workflow ${workflow}` : `the scope ${scope}`

interface RowProps {
  conversation: MemoryHead
  onShow: () => void
  onDelete: () => void
}

function Row({ conversation, onShow, onDelete }: RowProps): ReactElement {
  const { workflow, scope, key, turns, bytes, last_at_ms: last } = conversation
  const mayNot = useMayNot('editor')
  return (
    <div role="row" className="settings__row memory__row">
      <span role="cell">
        <code>{key}</code>
      </span>
      <span role="cell" data-label="Belongs to">
        {workflow ? <Link to={`/runs?workflow=${encodeURIComponent(workflow)}`}>{workflow}</Link> : `Scope ${scope}`}
      </span>
      <span role="cell" data-label="Size">{`${turnsText(turns)}, ${sizeText(bytes)}`}</span>
      <span role="cell" data-label="Last turn">
        <Ago at={last} />
      </span>
      <span role="cell" className="settings__session memory__acts">
        <Button aria-label={`Show ${key}`} onClick={onShow}>
          Show
        </Button>
        <Button icon="trash" iconOnly why={mayNot} onClick={onDelete}>{`Delete ${key}`}</Button>
      </span>
    </div>
  )
}

function ConversationDialog({ of, onClose }: { of: MemoryHead; onClose: () => void }): ReactElement {
  const found = useData(() => memory.turns(of), [of])
  return (
    <Dialog title={`Conversation ${of.key}`} open wide onClose={onClose}>
      {found.value?.length ? (
        <ol className="memory__turns" data-testid="memory-turns">
          {found.value.map((turn) => (
            <Said key={`${turn.run} ${turn.at_ms}`} turn={turn} />
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

function Said({ turn }: { turn: Turn }): ReactElement {
  return (
    <li>
      <p className="label">
        <Ago at={turn.at_ms} />, <Link to={`/runs/${encodeURIComponent(turn.run)}`}>run</Link>
      </p>
      <dl className="memory__said">
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
