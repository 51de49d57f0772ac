// The panel at the right: the selected block, its settings, and its input and output in the run that is shown. With no
// selection, the workflow itself.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../../state/live'
import { nodeAt } from '../../run'
import { uiStore, type InspectorTab } from '../../state/ui'
import { FieldScopeContext } from '../../forms/fields/scope'
import { BlockHead } from './BlockHead'
import { ConfigTab } from './ConfigTab'
import { EdgePanel, NotePanel, SeveralPanel } from './Others'
import { EventsTab } from './EventsTab'
import { NodeActions } from './NodeActions'
import { RunPanel } from './RunPanel'
import { InputTab, OutputTab } from './ValueTabs'
import { useFieldScopeOf, type Mode } from './useScope'
import { WorkflowPanel } from './WorkflowPanel'
import './inspector.css'

export default function Inspector({ mode }: { mode: Mode }): ReactElement {
  const { blocks, edges, notes } = useStore(uiStore, (state) => state.selection)
  const count = blocks.length + edges.length + notes.length
  return (
    <aside className="inspector" aria-label="Inspector" data-inspector data-testid="inspector">
      {blocks.length === 1 ? (
        <BlockInspector key={blocks[0]} mode={mode} id={blocks[0]!} />
      ) : count > 1 ? (
        <SeveralPanel mode={mode} />
      ) : edges.length === 1 ? (
        <EdgePanel mode={mode} id={edges[0]!} />
      ) : notes.length === 1 ? (
        <NotePanel mode={mode} id={notes[0]!} />
      ) : mode === 'run' ? (
        <RunPanel />
      ) : (
        <WorkflowInspector />
      )}
    </aside>
  )
}

function WorkflowInspector(): ReactElement {
  const scope = useFieldScopeOf('edit', null)
  return (
    <FieldScopeContext value={scope}>
      <WorkflowPanel />
    </FieldScopeContext>
  )
}

const TABS: readonly { id: InspectorTab; label: string }[] = [
  { id: 'config', label: 'Config' },
  { id: 'input', label: 'Input' },
  { id: 'output', label: 'Output' },
  { id: 'events', label: 'Events' },
]

function BlockInspector({ mode, id }: { mode: Mode; id: string }): ReactElement | null {
  const scope = useFieldScopeOf(mode, id)
  const wanted = useStore(uiStore, (state) => (mode === 'run' ? state.runTab : state.tab))
  const view = useStore(runStore, (state) => state.view)
  const ran = useStore(runStore, (state) => state.doc?.blocks[id] !== undefined && state.head.seq > 0)
  const iter = useStore(uiStore, (state) => state.iter)
  const sheet = useStore(uiStore, (state) => state.sheet !== null)
  const block = scope.doc.blocks[id]
  const node = useMemo(
    () => (block && ran ? nodeAt(view, scope.doc, id, iter) : undefined),
    [block, ran, view, scope.doc, id, iter],
  )
  if (!block) return null
  const tab = ran ? wanted : 'config'
  return (
    <FieldScopeContext value={scope}>
      <BlockHead id={id} node={node} hasRun={ran} tab={tab} />
      {ran && node && mode === 'run' ? <NodeActions node={node} /> : null}
      {ran ? <Tabs tab={tab} onTurn={(to) => uiStore.setState(mode === 'run' ? { runTab: to } : { tab: to })} /> : null}
      <div
        className="inspector__body"
        id="inspector-panel"
        role={ran ? 'tabpanel' : undefined}
        aria-labelledby={ran ? `inspector-${tab}` : undefined}
        tabIndex={ran ? -1 : undefined}
      >
        {sheet ? null : tab === 'config' ? (
          <ConfigTab id={id} />
        ) : tab === 'input' ? (
          <InputTab id={id} node={node} />
        ) : tab === 'output' ? (
          <OutputTab id={id} node={node} />
        ) : (
          <EventsTab id={id} node={node} />
        )}
      </div>
    </FieldScopeContext>
  )
}

function Tabs({ tab, onTurn }: { tab: InspectorTab; onTurn: (to: InspectorTab) => void }): ReactElement {
  return (
    <div
      className="tabs"
      role="tablist"
      aria-label="About this block"
      onKeyDown={(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
        if (by === undefined) return
        const next = TABS[(TABS.findIndex((each) => each.id === tab) + by + TABS.length) % TABS.length]!
        onTurn(next.id)
        document.getElementById(`inspector-${next.id}`)?.focus()
        event.preventDefault()
        event.stopPropagation()
      }}
    >
      {TABS.map((each) => (
        <button
          key={each.id}
          type="button"
          role="tab"
          id={`inspector-${each.id}`}
          data-testid={`tab-${each.id}`}
          aria-selected={tab === each.id}
          aria-controls="inspector-panel"
          tabIndex={tab === each.id ? 0 : -1}
          onClick={() => onTurn(each.id)}
        >
          {each.label}
        </button>
      ))}
    </div>
  )
}
