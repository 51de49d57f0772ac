// The list of block types that is opened where a block is wanted, and the list of targets for connecting by keyboard.

import { useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { addBlock, connect } from '../../actions/edit'
import { sentenceText } from '../../canvas/sentence'
import { focusNode } from '../../actions/view'
import type { BlockSpec } from '../../api/types'
import { dispatch, docStore, specsStore } from '../../state/doc'
import {
  checkEdge,
  handlesOf,
  handleTitle,
  indexOf,
  namedHandles,
  nameOf,
  parentOf,
  readingOrder,
  kindOf,
} from '../../document/document'
import { iconOf } from '../../ui/icons'
import { fuzzy, Listbox, type ListOption } from '../../ui/Listbox'
import { Overlay } from '../shell/Overlay'
import { grouped, groupOf } from './groups'
import { search } from './search'
import { closePicker, openPicker, pickerStore, remember, type PickerRequest } from '../../actions/picker'

const AWAY = 'away '

type Adding = Extract<PickerRequest, { mode: 'add' }>
type Joining = Extract<PickerRequest, { mode: 'connect' }>

export default function BlockPicker(): ReactElement | null {
  const request = useStore(pickerStore, (s) => s.request)
  if (!request) return null
  const name = request.mode === 'add' ? 'Add a block' : 'Connect'
  return (
    <Overlay label={name} at={request.screen} onClose={closePicker}>
      <div data-testid="block-picker">
        {request.mode === 'add' ? <Add request={request} /> : <Join key={request.handle} request={request} />}
      </div>
    </Overlay>
  )
}

function Add({ request }: { request: Adding }): ReactElement {
  const [query, setQuery] = useState('')
  const list = useStore(specsStore, (s) => s.list)
  const recent = useStore(pickerStore, (s) => s.recent)
  const options = useMemo(() => optionsFor(fitting(list, request), query, recent), [list, request, query, recent])
  const after = request.from ? nameOf(docStore.getState().doc, request.from.source) : null
  return (
    <Listbox
      label="Block types"
      placeholder={after ? `Add a block after ${after}` : 'Add a block'}
      options={options}
      query={query}
      onQuery={setQuery}
      autoFocus
      empty="No results"
      onCancel={cancel}
      onChoose={(option) => {
        closePicker()
        const type = option.id.replace(/^recent /, '')
        remember(type)
        addBlock(type, { at: request.at, from: request.from, edge: request.edge, parent: request.parent })
      }}
    />
  )
}

/** What may stand where the picker was opened: nothing that starts runs behind an edge or in a container, no note on an edge. */
function fitting(list: readonly BlockSpec[], { from, edge, parent }: Adding): BlockSpec[] {
  const { doc } = docStore.getState()
  const joined = from !== undefined || edge !== undefined
  const inner = from?.handle === 'body' || (from?.handle === 'finally' && kindOf(doc, from.source) !== null)
  const inside = parent || (from && (inner || parentOf(doc, from.source)))
  return list.filter((spec) => (spec.trigger ? !joined && !inside : spec.category === 'annotation' ? !joined : true))
}

function optionsFor(list: readonly BlockSpec[], query: string, recent: readonly string[]): ListOption[] {
  const option = (spec: BlockSpec, group?: string, prefix = ''): ListOption => ({
    id: prefix + spec.type,
    label: spec.title,
    icon: iconOf(spec.type, spec.icon),
    about: spec.description,
    ...(group ? { group } : {}),
    ...(query ? { detail: groupOf(spec) } : {}),
  })
  if (query.trim()) return search(list, query).map((spec) => option(spec))
  const before = recent
    .map((type) => list.find((spec) => spec.type === type))
    .filter((spec): spec is BlockSpec => !!spec)
  return [
    ...before.map((spec) => option(spec, 'Recent', 'recent ')),
    ...grouped(list).flatMap(({ group, specs }) => specs.map((spec) => option(spec, group))),
  ]
}

/** First a handle (when there are several), then a target: only those that may be joined, then those that are. */
function Join({ request }: { request: Joining }): ReactElement {
  const [query, setQuery] = useState('')
  const options = useMemo(
    () => (request.handle === null ? handleOptions(request.source) : targetOptions(request.source, request.handle)),
    [request],
  )
  const shown = query.trim()
    ? options
        .map((o) => ({ o, score: fuzzy(o.label, query) }))
        .filter((each) => each.score > 0)
        .sort((a, b) => b.score - a.score)
        .map((each) => each.o)
    : options
  const { doc } = docStore.getState()
  const name = nameOf(doc, request.source)
  return (
    <Listbox
      label={request.handle === null ? 'Branch' : 'Target'}
      placeholder={request.handle === null ? `Connect from: a branch of ${name}` : `Connect ${name} to`}
      options={shown}
      query={query}
      onQuery={setQuery}
      autoFocus
      onCancel={cancel}
      empty={query ? 'No results' : `No block can follow ${name}.`}
      onChoose={(option) => {
        if (request.handle === null) return openPicker({ ...request, handle: option.id })
        closePicker()
        if (option.id.startsWith(AWAY)) dispatch({ type: 'removeEdges', ids: [option.id.slice(AWAY.length)] })
        else connect(request.source, request.handle, option.id)
        focusNode(request.source)
      }}
    />
  )
}

function handleOptions(source: string): ListOption[] {
  const block = docStore.getState().doc.blocks[source]
  if (!block) return []
  const specs = specsStore.getState().specs
  const titles = new Map(namedHandles(block, specs.get(block.type)).map((named) => [named.id, named.title]))
  const wired = new Set((indexOf(docStore.getState().doc).outOf.get(source) ?? []).map((edge) => edge.handle))
  return handlesOf(block, specs).map((id) => ({
    id,
    label: titles.get(id) ?? handleTitle(block, id, specs.get(block.type)),
    ...(wired.has(id) ? { detail: 'Connected' } : {}),
  }))
}

function targetOptions(source: string, handle: string): ListOption[] {
  const { doc } = docStore.getState()
  const { specs } = specsStore.getState()
  const option = (target: string): ListOption => {
    const block = doc.blocks[target]!
    return {
      id: target,
      label: nameOf(doc, target),
      icon: iconOf(block.type),
      detail: sentenceText(block, specs.get(block.type)).slice(0, 24),
    }
  }
  const joined = (indexOf(doc).outOf.get(source) ?? []).filter(
    (edge) => edge.handle === handle && doc.blocks[edge.target],
  )
  return [
    ...readingOrder(doc)
      .filter((target) => checkEdge(doc, { source, handle, target }, specs) === null)
      .map(option),
    ...joined.map((edge) => ({ ...option(edge.target), id: AWAY + edge.id, group: 'Remove connection' })),
  ]
}

function cancel(): void {
  const request = pickerStore.getState().request
  closePicker()
  if (request) focusNode(request.mode === 'connect' ? request.source : (request.from?.source ?? null))
}

export { BlockPicker }
