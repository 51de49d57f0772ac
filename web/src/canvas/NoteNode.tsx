// A remark on the canvas. Double click or Enter to write; it is never compiled.

import { NodeResizer, type NodeProps } from '@xyflow/react'
import { memo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { dispatch } from '../state/doc'
import { inPlaceStore } from '../actions/inPlace'
import { NOTE_PREFIX, type NoteFlow } from './flow'
import { useMode } from './mode'
import { resizeEnd } from './resize'
import { focusNode } from '../actions/view'

export const NoteNode = memo(function NoteNode({ id, data, selected }: NodeProps<NoteFlow>): ReactElement {
  const mode = useMode()
  const key = data.note ?? id
  const editing = useStore(inPlaceStore, (s) => s.note === key) && mode === 'edit'
  return (
    <div
      className="note"
      data-testid={data.note === null ? `block-${id}` : `note-${data.note}`}
      data-selected={selected}
    >
      {selected && mode === 'edit' ? (
        <NodeResizer
          minWidth={112}
          minHeight={48}
          lineClassName="resize__line"
          handleClassName="resize__grip"
          onResizeEnd={(_, box) => resizeEnd(id, box)}
        />
      ) : null}
      {editing ? (
        <Editor id={key} node={id} text={data.text} isBlock={data.note === null} />
      ) : (
        <p className="note__text">{data.text || <span className="quiet">Double-click to write</span>}</p>
      )}
    </div>
  )
})

function Editor({
  id,
  node,
  text,
  isBlock,
}: {
  id: string
  node: string
  text: string
  isBlock: boolean
}): ReactElement {
  const end = (value: string): void => {
    if (inPlaceStore.getState().note !== id) return
    inPlaceStore.setState({ note: null })
    if (value === text) return
    if (isBlock) dispatch({ type: 'setParam', id, path: ['text'], value })
    else dispatch({ type: 'setNote', id, note: { text: value } })
  }
  return (
    <textarea
      className="note__edit nodrag nopan nowheel"
      aria-label="Note"
      defaultValue={text}
      autoFocus
      spellCheck
      onFocus={(event) => event.currentTarget.setSelectionRange(text.length, text.length)}
      onBlur={(event) => end(event.currentTarget.value)}
      onKeyDown={(event) => {
        event.stopPropagation()
        if (event.key !== 'Escape') return
        end(event.currentTarget.value)
        focusNode(isBlock ? node : NOTE_PREFIX + id)
      }}
    />
  )
}
