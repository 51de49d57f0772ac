// The document without a canvas: a tree to walk with the arrow keys, with everything that can be done to a block. For keyboards,
// screen readers, and for reading a large workflow from top to bottom.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { announce } from '../../a11y'
import { dispatch, docStore, redo, specsStore, undo } from '../../state/doc'
import { handlesOf, handleTitle, kindOf, nameOf } from '../../document/document'
import { runStore } from '../../state/live'
import { statusAt } from '../../run'
import { select, uiStore } from '../../state/ui'
import { matchesKeys } from '../../keys'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon, iconOf } from '../../ui/icons'
import { fuzzy, Listbox, type ListOption } from '../../ui/Listbox'
import { Status } from '../../ui/status'
import { sentenceText } from '../../canvas/sentence'
import { addBehind, containersFor, targetsFor } from './actions'
import { outlineRows, parentRow, type OutlineRow } from './tree'
import './outline.css'

/** What is being picked from a list, for which block. */
type Picking =
  | { what: 'add'; of: string | null }
  | { what: 'handle'; of: string }
  | { what: 'target'; of: string; handle: string }
  | { what: 'move'; of: string }

export default function OutlineView(): ReactElement {
  const doc = useStore(docStore, (state) => state.doc)
  const readonly = useStore(docStore, (state) => state.readonly)
  const diagnostics = useStore(docStore, (state) => state.diagnostics)
  const specs = useStore(specsStore, (state) => state.specs)
  const selection = useStore(uiStore, (state) => state.selection)
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const [picking, setPicking] = useState<Picking | null>(null)
  const [active, setActive] = useState<string | null>(selection.blocks[0] ?? null)
  const tree = useRef<HTMLDivElement>(null)
  const rows = useMemo(() => outlineRows(doc, specs, closed), [doc, specs, closed])
  const at = Math.max(
    0,
    rows.findIndex((row) => row.key === active),
  )
  const row = rows[at]
  const wrong = useMemo(
    () => new Set(diagnostics.filter((each) => each.severity === 'error' && each.block).map((each) => each.block!)),
    [diagnostics],
  )

  useEffect(() => {
    const [only] = selection.blocks
    if (only !== undefined && only !== active) setActive(only)
  }, [selection.blocks])

  const go = (to: number): void => {
    const next = rows[Math.max(0, Math.min(rows.length - 1, to))]
    if (!next) return
    setActive(next.key)
    select(next.kind === 'block' ? { blocks: [next.id] } : { edges: [next.id] })
    tree.current?.querySelector(`[data-key="${CSS.escape(next.key)}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  const fold = (id: string, shut: boolean): void => {
    const next = new Set(closed)
    if (shut) next.add(id)
    else next.delete(id)
    setClosed(next)
  }
  const back = (): void => {
    setPicking(null)
    requestAnimationFrame(() => tree.current?.focus())
  }
  const connect = (of: string): void => {
    const handles = handlesOf(doc.blocks[of]!, specs)
    if (handles.length)
      setPicking(handles.length === 1 ? { what: 'target', of, handle: handles[0]! } : { what: 'handle', of })
  }
  const remove = (gone: OutlineRow): void => {
    const next = rows[at + 1] ?? rows[at - 1]
    if (gone.kind === 'edge') dispatch({ type: 'removeEdges', ids: [gone.id] })
    else dispatch({ type: 'removeBlocks', ids: [gone.id] })
    announce(gone.kind === 'edge' ? 'Connection deleted' : `${nameOf(doc, gone.id)} deleted`)
    setActive(next?.key ?? null)
    select(next?.kind === 'block' ? { blocks: [next.id] } : {})
  }
  const edit = (): void => {
    uiStore.setState({ tab: 'config' })
    requestAnimationFrame(() =>
      document.querySelector<HTMLElement>('[data-inspector] :is(input, textarea, select)')?.focus(),
    )
  }

  const onKey = (event: KeyboardEvent): void => {
    const { key } = event
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey
    const native = event.nativeEvent
    if (matchesKeys(native, 'mod+Z')) undo()
    else if (matchesKeys(native, 'mod+shift+Z') || matchesKeys(native, 'mod+Y')) redo()
    else if (!plain) return
    else if (key === 'ArrowDown') go(at + 1)
    else if (key === 'ArrowUp') go(at - 1)
    else if (key === 'Home') go(0)
    else if (key === 'End') go(rows.length - 1)
    else if (key === 'ArrowRight' && row?.kind === 'block')
      row.open === false ? fold(row.id, false) : row.open && go(at + 1)
    else if (key === 'ArrowRight' && row?.kind === 'edge') go(rows.findIndex((each) => each.key === row.edge.target))
    else if (key === 'ArrowLeft') row?.kind === 'block' && row.open ? fold(row.id, true) : go(parentRow(rows, at))
    else if (key === 'Enter' && row)
      row.kind === 'block' ? edit() : go(rows.findIndex((each) => each.key === row.edge.target))
    else if (readonly) return
    else if (key === '/' || key.toLowerCase() === 'n')
      setPicking({ what: 'add', of: row?.kind === 'block' ? row.id : null })
    else if (key.toLowerCase() === 'c' && row?.kind === 'block') connect(row.id)
    else if (key.toLowerCase() === 'm' && row?.kind === 'block') setPicking({ what: 'move', of: row.id })
    else if (key.toLowerCase() === 'd' && row?.kind === 'block')
      dispatch({ type: 'setEnabled', ids: [row.id], enabled: doc.blocks[row.id]?.enabled === false })
    else if ((key === 'Delete' || key === 'Backspace') && row) remove(row)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <section className="outline" aria-label="Outline" data-testid="outline">
      <header className="outline__head">
        <h2>Outline</h2>
        <span className="label outline__keys">
          {readonly ? 'Read only' : 'N add, C connect, M move, Enter edit, Delete delete'}
        </span>
        {readonly ? null : (
          <Button icon="plus" onClick={() => setPicking({ what: 'add', of: row?.kind === 'block' ? row.id : null })}>
            Add
          </Button>
        )}
        <Button kind="bare" icon="close" iconOnly onClick={() => uiStore.setState({ view: 'canvas' })}>
          Close the outline
        </Button>
      </header>
      {picking ? <Picker picking={picking} onNext={setPicking} onDone={back} /> : null}
      {rows.length ? (
        <div
          ref={tree}
          role="tree"
          tabIndex={0}
          className="outline__tree"
          aria-label="Blocks in the order they run"
          aria-activedescendant={row ? `outline-${row.key}` : undefined}
          onKeyDown={onKey}
        >
          {rows.map((each, i) => (
            <div
              key={each.key}
              id={`outline-${each.key}`}
              data-key={each.key}
              role="treeitem"
              aria-level={each.depth + 1}
              aria-selected={i === at}
              aria-expanded={each.kind === 'block' && each.open !== null ? each.open : undefined}
              className={`outline__row outline__row--${each.kind}`}
              style={{ paddingLeft: 12 + each.depth * 20 }}
              data-testid={`outline-${each.key}`}
              onClick={() => go(i)}
              onDoubleClick={() => (each.kind === 'block' ? edit() : undefined)}
            >
              {each.kind === 'edge' ? (
                <>
                  <span className="outline__by">
                    {handleTitle(
                      doc.blocks[each.edge.source]!,
                      each.edge.handle,
                      specs.get(doc.blocks[each.edge.source]!.type),
                    )}
                  </span>
                  <Icon name="chevron" size={12} />
                  <span>{each.target}</span>
                </>
              ) : (
                <>
                  <button
                    type="button"
                    tabIndex={-1}
                    className="outline__twist"
                    aria-hidden="true"
                    disabled={each.open === null}
                    onClick={(event) => (event.stopPropagation(), fold(each.id, each.open === true))}
                  >
                    {each.open === null ? null : <Icon name={each.open ? 'down' : 'chevron'} size={12} />}
                  </button>
                  <Icon name={iconOf(doc.blocks[each.id]!.type)} />
                  <span
                    className={
                      doc.blocks[each.id]!.enabled === false ? 'outline__name outline__name--off' : 'outline__name'
                    }
                  >
                    {nameOf(doc, each.id)}
                  </span>
                  <span className="outline__does">
                    {sentenceText(doc.blocks[each.id]!, specs.get(doc.blocks[each.id]!.type))}
                  </span>
                  {wrong.has(each.id) ? (
                    <span className="outline__wrong">
                      <Icon name="failed" size={14} label="has errors" />
                    </span>
                  ) : null}
                  {view.seq > 0 ? <Status status={statusAt(view, doc, each.id, iter)} /> : null}
                  {readonly || i !== at ? null : (
                    <span className="outline__acts">
                      <Button kind="bare" tabIndex={-1} icon="link" iconOnly onClick={() => connect(each.id)}>
                        Connect to another block
                      </Button>
                      <Button
                        kind="bare"
                        tabIndex={-1}
                        icon="loop"
                        iconOnly
                        onClick={() => setPicking({ what: 'move', of: each.id })}
                      >
                        Move into a container
                      </Button>
                      <Button
                        kind="bare"
                        tabIndex={-1}
                        icon="trash"
                        iconOnly
                        onClick={() => remove(each)}
                      >{`Delete ${nameOf(doc, each.id)}`}</Button>
                    </span>
                  )}
                </>
              )}
            </div>
          ))}
        </div>
      ) : (
        <EmptyState title="No blocks yet">
          <Button icon="plus" onClick={() => setPicking({ what: 'add', of: null })}>
            Add a block
          </Button>
        </EmptyState>
      )}
    </section>
  )
}

function Picker({
  picking,
  onNext,
  onDone,
}: {
  picking: Picking
  onNext: (picking: Picking) => void
  onDone: () => void
}): ReactElement {
  const doc = useStore(docStore, (state) => state.doc)
  const { specs, list } = useStore(specsStore, (state) => state)
  const [query, setQuery] = useState('')
  useEffect(() => setQuery(''), [picking])
  const { options, label, choose } = choicesOf()
  const ranked = options
    .map((option) => ({ option, score: fuzzy(`${option.label} ${option.detail ?? ''}`, query) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => (query ? b.score - a.score : 0))
    .map(({ option }) => option)
  return (
    <div className="outline__picker">
      <Listbox
        key={JSON.stringify(picking)}
        label={label}
        placeholder={label}
        options={ranked}
        query={query}
        onQuery={setQuery}
        onChoose={(option) => choose(option.id)}
        onCancel={onDone}
        autoFocus
        empty="No results. Press Esc to go back."
      />
    </div>
  )

  function choicesOf(): { options: ListOption[]; label: string; choose: (id: string) => void } {
    switch (picking.what) {
      case 'add':
        return {
          label: picking.of === null ? 'Add a block' : `Add a block after ${nameOf(doc, picking.of)}`,
          options: list
            .filter((spec) => spec.category !== 'annotation')
            .map((spec) => ({
              id: spec.type,
              label: spec.title,
              detail: spec.category,
              icon: iconOf(spec.type, spec.icon),
            })),
          choose: (type) => (addBehind(picking.of, specs.get(type)!), onDone()),
        }
      case 'handle':
        return {
          label: `Connect from: a branch of ${nameOf(doc, picking.of)}`,
          options: handlesOf(doc.blocks[picking.of]!, specs).map((handle) => ({
            id: handle,
            label: handleTitle(doc.blocks[picking.of]!, handle, specs.get(doc.blocks[picking.of]!.type)),
          })),
          choose: (handle) => onNext({ what: 'target', of: picking.of, handle }),
        }
      case 'target':
        return {
          label: `Connect ${nameOf(doc, picking.of)} to`,
          options: targetsFor(doc, picking.of, picking.handle, specs)
            .filter((each) => each.why === null)
            .map((each) => ({
              id: each.id,
              label: each.name,
              detail: specs.get(doc.blocks[each.id]!.type)?.title ?? '',
              icon: iconOf(doc.blocks[each.id]!.type),
            })),
          choose: (target) => {
            if (dispatch({ type: 'addEdge', edge: { source: picking.of, target, handle: picking.handle } }))
              announce(`Connected to ${nameOf(doc, target)}`)
            onDone()
          },
        }
      case 'move':
        return {
          label: `Move ${nameOf(doc, picking.of)} into`,
          options: containersFor(doc, picking.of, specs)
            .filter((each) => each.why === null)
            .map((each) => ({
              id: `in:${each.id}`,
              label: each.name,
              detail: each.id ? (kindOf(doc, each.id, specs) ?? '') : '',
            })),
          choose: (key) => {
            const parent = key.slice(3)
            if (dispatch({ type: 'reparent', ids: [picking.of], parent }))
              announce(parent ? `Moved into ${nameOf(doc, parent)}` : 'Moved out')
            onDone()
          },
        }
    }
  }
}
