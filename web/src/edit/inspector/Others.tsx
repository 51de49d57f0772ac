// What else can be selected: several things, an edge, a note.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { dispatch, docStore, specsOf } from '../../state/doc'
import { handlesOf, handleTitle, indexOf, nameOf, noteId } from '../../document/document'
import { runStore } from '../../state/live'
import { edgeAt } from '../../run'
import { select, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon, iconOf } from '../../ui/icons'
import { useShownDoc, type Mode } from './useScope'

export function SeveralPanel({ mode }: { mode: Mode }): ReactElement {
  const doc = useShownDoc(mode)
  const { blocks, edges, notes } = useStore(uiStore, (state) => state.selection)
  const readonly = useStore(docStore, (state) => state.readonly) || mode === 'run'
  const off = blocks.filter((id) => doc.blocks[id]?.enabled === false)
  const said = [counted(blocks.length, 'block'), counted(edges.length, 'connection'), counted(notes.length, 'note')]
    .filter(Boolean)
    .join(', ')
  const remove = (): void => {
    dispatch({
      type: 'batch',
      label: `delete ${said}`,
      commands: [
        ...(edges.length ? [{ type: 'removeEdges' as const, ids: [...edges] }] : []),
        ...(blocks.length || notes.length
          ? [{ type: 'removeBlocks' as const, ids: [...blocks], notes: [...notes] }]
          : []),
      ],
    })
    select({})
  }
  return (
    <>
      <header className="inspector__head">
        <div className="inspector__title">
          <h2>{said} selected</h2>
        </div>
      </header>
      <div className="inspector__body">
        <ul className="picked">
          {blocks
            .filter((id) => doc.blocks[id])
            .map((id) => (
              <li key={id}>
                <button type="button" onClick={() => select({ blocks: [id] })}>
                  <Icon name={iconOf(doc.blocks[id]!.type)} />
                  {nameOf(doc, id)}
                </button>
              </li>
            ))}
        </ul>
        {readonly ? null : (
          <div className="inspector__acts">
            {blocks.length ? (
              <Button onClick={() => dispatch({ type: 'setEnabled', ids: [...blocks], enabled: off.length > 0 })}>
                {off.length ? 'Enable' : 'Disable'}
              </Button>
            ) : null}
            <Button kind="danger" icon="trash" onClick={remove}>
              Delete
            </Button>
          </div>
        )}
      </div>
    </>
  )
}

export function EdgePanel({ mode, id }: { mode: Mode; id: string }): ReactElement | null {
  const doc = useShownDoc(mode)
  const readonly = useStore(docStore, (state) => state.readonly) || mode === 'run'
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const edge = indexOf(doc).edge.get(id)
  if (!edge) return null
  const routed =
    view.seq > 0 ? edgeAt(view, doc, { source: edge.source, target: edge.target, handle: edge.handle }, iter) : null
  const source = doc.blocks[edge.source]
  const handles = source ? handlesOf(source, specsOf()) : []
  const swap = (handle: string): void => {
    const put = dispatch({
      type: 'batch',
      label: 'change connection',
      commands: [
        { type: 'removeEdges', ids: [id] },
        { type: 'addEdge', edge: { source: edge.source, target: edge.target, handle } },
      ],
    })
    if (put) select({ edges: [`${edge.source}:${handle}>${edge.target}`] })
  }
  return (
    <>
      <header className="inspector__head">
        <div className="inspector__title">
          <h2>Connection</h2>
        </div>
        <dl className="facts">
          <dt>From</dt>
          <dd>
            <Pick doc={doc} id={edge.source} />
          </dd>
          <dt>To</dt>
          <dd>
            <Pick doc={doc} id={edge.target} />
          </dd>
          {routed ? (
            <>
              <dt>Taken</dt>
              <dd>
                {counted(routed.live, 'time') || 'Never'}
                {routed.dead ? `, skipped ${counted(routed.dead, 'time')}` : ''}
              </dd>
            </>
          ) : null}
        </dl>
      </header>
      <div className="inspector__body">
        <label className="fld">
          <span className="fld__label">Branch</span>
          <select
            value={edge.handle}
            disabled={readonly}
            onChange={(event) => swap(event.target.value)}
            data-testid="edge-handle"
          >
            {(handles.includes(edge.handle) ? handles : [edge.handle, ...handles]).map((handle) => (
              <option key={handle} value={handle}>
                {source ? handleTitle(source, handle, specsOf().get(source.type)) : handle}
              </option>
            ))}
          </select>
        </label>
        {readonly ? null : (
          <div className="inspector__acts">
            <Button
              kind="danger"
              icon="trash"
              onClick={() => (dispatch({ type: 'removeEdges', ids: [id] }), select({}))}
            >
              Delete
            </Button>
          </div>
        )}
      </div>
    </>
  )
}

export function NotePanel({ mode, id }: { mode: Mode; id: string }): ReactElement | null {
  const doc = useShownDoc(mode)
  const readonly = useStore(docStore, (state) => state.readonly) || mode === 'run'
  const note = (doc.notes ?? []).find((each, i) => noteId(each, i) === id)
  if (!note) return <EmptyState title="This note was deleted" />
  return (
    <>
      <header className="inspector__head">
        <div className="inspector__title">
          <Icon name="note" />
          <h2>Note</h2>
        </div>
      </header>
      <div className="inspector__body">
        <label className="fld">
          <span className="fld__label">Text</span>
          <textarea
            rows={8}
            value={note.text ?? ''}
            readOnly={readonly}
            data-testid="field-note"
            onChange={(event) => dispatch({ type: 'setNote', id, note: { text: event.target.value } }, `note ${id}`)}
          />
        </label>
        {readonly ? null : (
          <div className="inspector__acts">
            <Button
              kind="danger"
              icon="trash"
              onClick={() => (dispatch({ type: 'removeNotes', ids: [id] }), select({}))}
            >
              Delete
            </Button>
          </div>
        )}
      </div>
    </>
  )
}

function Pick({ doc, id }: { doc: ReturnType<typeof useShownDoc>; id: string }): ReactElement {
  return (
    <button type="button" className="linklike" onClick={() => select({ blocks: [id] })}>
      {nameOf(doc, id)}
    </button>
  )
}

function counted(count: number, word: string): string {
  return count === 0 ? '' : count === 1 ? `1 ${word}` : `${count} ${word}s`
}
