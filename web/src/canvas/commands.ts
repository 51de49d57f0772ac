// What each row of KEYS does on the canvas. Keys, menus and the command palette all come through `runCommand`.

import { api } from '../net/api'
import type { KeyId } from '../keys'
import { docStore, specsOf } from '../state/doc'
import { chainOf, downstreamOf, handlesOf, nameOf, upstreamOf } from '../document/document'
import { runStore, seek, stepBy } from '../state/live'
import { mayNot } from '../state/me'
import { isEnded, scopesAt } from '../run'
import { openSheet, select, setIter, uiStore } from '../state/ui'
import { openPicker } from '../actions/picker'
import { lastInputs, run, runDraft } from '../actions/start'
import { rerunStore } from '../actions/start'
import { goToFirstError } from '../actions/jump'
import { announce } from '../a11y'
import { toast } from '../ui/Toast'
import { nudge, tidy } from '../actions/arrange'
import { copySelection, duplicate, lastCopied, pasteText } from '../actions/clipboard'
import { addNote, deleteSelection, fromSelection, toggleEnabled } from '../actions/edit'
import { inPlaceStore } from '../actions/inPlace'
import { redoStep, undoStep } from '../actions/undo'
import { GRID } from '../geometry/size'
import { fit, focusNode, hereOnScreen, herePoint, pointerOnScreen, zoomBy, zoomTo } from '../actions/view'
import { walk } from './walk'
import { openMenu } from './menu'

export type CanvasMode = 'edit' | 'run'
/** False: it did nothing, so the key is the browser's. */
type Handler = (mode: CanvasMode, event?: KeyboardEvent) => boolean | void

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
}

const edits: Partial<Record<KeyId, Handler>> = {
  add: () => addHere(),
  connect: () => startConnect(),
  rename: () => {
    const id = onlyBlock()
    if (id === null) return false
    inPlaceStore.setState({ rename: id })
  },
  wrap: () => {
    const at = hereOnScreen()
    openMenu({ kind: 'wrap', x: at.x, y: at.y })
  },
  note: () => void addNote(herePoint()),
  disable: toggleEnabled,
  move: (_, event) => nudgeBy(event, GRID),
  moveFar: (_, event) => nudgeBy(event, GRID * 4),
  tidy,
  undo: undoStep,
  redo: redoStep,
  cut: () => {
    const text = copySelection()
    if (text === null) return false
    void toClipboard(text)
    deleteSelection()
  },
  paste: () => void pasteFromClipboard(),
  duplicate,
  delete: deleteSelection,
  save: () => uiStore.setState({ overlay: 'version' }),
  find: () => uiStore.setState({ overlay: 'find' }),
  run: () => void run(),
  runAgain: () => void runAgain(),
}

const always: Partial<Record<KeyId, Handler>> = {
  edit: () => {
    const id = onlyBlock()
    const [note] = uiStore.getState().selection.notes
    if (note !== undefined && id === null) return inPlaceStore.setState({ note })
    if (id === null) return false
    openSheet(id)
  },
  back: () => back(),
  walk: (mode, event) => {
    const direction = event && DIRECTIONS[event.key]
    return direction ? walk(shownDoc(mode), specsOf(), direction) : false
  },
  selectUpstream: (mode) => selectReach(mode, upstreamOf, 'upstream'),
  selectDownstream: (mode) => selectReach(mode, downstreamOf, 'downstream'),
  copy: () => {
    const text = copySelection()
    if (text === null) return false
    void toClipboard(text)
  },
  selectAll: (mode) => {
    const doc = shownDoc(mode)
    select({ blocks: Object.keys(doc.blocks) })
    announce(`${Object.keys(doc.blocks).length} blocks selected`)
  },
  cancel: (mode) => (mode === 'run' || mayNot('editor') ? false : void cancelRun()),
  rerun: (mode) => {
    if (mode === 'run' || mayNot('editor')) return false
    const id = onlyBlock()
    if (runStore.getState().id === null || id === null) return void announce('Select a block of a finished run.')
    rerunStore.setState({ from: id })
  },
  firstError: () => {
    if (!goToFirstError()) announce('No errors')
  },
  previousIteration: (mode) => turn(mode, -1),
  nextIteration: (mode) => turn(mode, 1),
  previousEvent: () => stepBy(-1),
  nextEvent: () => stepBy(1),
  previousBlock: () => stepBy(-1, 'block'),
  nextBlock: () => stepBy(1, 'block'),
  tapeStart: () => seek(0),
  live: () => seek('live'),
  json: () => uiStore.setState(({ view }) => ({ view: view === 'json' ? 'canvas' : 'json' })),
  outline: () => uiStore.setState(({ view }) => ({ view: view === 'outline' ? 'canvas' : 'outline' })),
  trace: () => uiStore.setState(({ drawer }) => ({ drawer: drawer === 'trace' ? 'tape' : 'trace' })),
  zoom100: () => zoomTo(1),
  fit: () => fit(),
  fitSelection: () => {
    const { blocks } = uiStore.getState().selection
    fit(blocks.length ? blocks : null)
  },
  zoomIn: () => zoomBy(1.25),
  zoomOut: () => zoomBy(0.8),
  minimap: () => uiStore.setState(({ minimap }) => ({ minimap: !minimap })),
  shortcuts: () => uiStore.setState({ overlay: 'shortcuts' }),
  commands: () => uiStore.setState({ overlay: 'palette' }),
}

/** Do what a row of KEYS says. False: nothing happened. */
export function runCommand(id: KeyId, mode: CanvasMode, event?: KeyboardEvent): boolean {
  const mayEdit = mode === 'edit' && !docStore.getState().readonly
  const handler = always[id] ?? (mayEdit ? edits[id] : undefined)
  return handler ? handler(mode, event) !== false : false
}

/** `beside`: where the list of blocks stands, if not beside what is selected. */
export function addHere(beside?: { x: number; y: number }): void {
  const pointer = pointerOnScreen()
  const from = fromSelection()
  openPicker({
    mode: 'add',
    screen: beside ?? (from ? pickerPlace() : hereOnScreen()),
    ...(from ? { from } : pointer ? { at: herePoint() } : {}),
  })
}

/** Pick a handle, then a target, from lists. */
export function startConnect(): boolean {
  const id = onlyBlock()
  if (id === null) {
    announce('Select one block to connect from.')
    return false
  }
  const block = docStore.getState().doc.blocks[id]!
  const handles = handlesOf(block, specsOf())
  if (!handles.length) return false
  openPicker({ mode: 'connect', screen: pickerPlace(), source: id, handle: handles.length === 1 ? handles[0]! : null })
  return true
}

export async function cancelRun(): Promise<void> {
  const { id, head } = runStore.getState()
  if (id === null || isEnded(head.status)) return
  try {
    await api.cancelRun(id, 'Cancelled in the editor')
    announce('Cancelling the run')
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'err')
  }
}

/** Start the draft once more with the input of last time; without one the form opens. */
export async function runAgain(): Promise<void> {
  try {
    const [last] = await lastInputs()
    if (last === undefined) uiStore.setState({ overlay: 'run' })
    else await runDraft(last)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'err', {
      label: 'Open the form',
      onSelect: () => uiStore.setState({ overlay: 'run' }),
    })
  }
}

export async function toClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // The page has the text, so pasting here works.
  }
}

async function pasteFromClipboard(): Promise<void> {
  let text = lastCopied()
  try {
    text = await navigator.clipboard.readText()
  } catch {
    // Not allowed to read: what was copied in this page is what there is.
  }
  if (text === null || !pasteText(text)) announce('Nothing to paste')
}

function onlyBlock(): string | null {
  const { blocks } = uiStore.getState().selection
  return blocks.length === 1 ? blocks[0]! : null
}

function shownDoc(mode: CanvasMode) {
  return mode === 'edit' ? docStore.getState().doc : (runStore.getState().doc ?? docStore.getState().doc)
}

function nudgeBy(event: KeyboardEvent | undefined, by: number): boolean {
  const direction = event && DIRECTIONS[event.key]
  if (!direction) return false
  const { blocks, notes } = uiStore.getState().selection
  if (!blocks.length && !notes.length) return false
  nudge(direction[0] * by, direction[1] * by)
  return true
}

function selectReach(mode: CanvasMode, reach: typeof upstreamOf, word: string): boolean {
  const id = onlyBlock()
  if (id === null) return false
  const found = [...reach(shownDoc(mode), id).keys()]
  select({ blocks: [id, ...found] })
  announce(`${found.length} ${word} blocks selected`)
  return true
}

/** The iteration of the selected container, or of the one around the selected block. */
function turn(mode: CanvasMode, by: 1 | -1): boolean {
  const container = turned(mode)
  if (container === undefined) return false
  stepIteration(container, by)
  return true
}

function turned(mode: CanvasMode): string | undefined {
  const { view, doc } = runStore.getState()
  const id = onlyBlock()
  return id === null
    ? undefined
    : [id, ...chainOf(doc ?? shownDoc(mode), id)].find((each) => view.shape.kinds.has(each))
}

/** Has that iteration started? */
export function canTurn(mode: CanvasMode, by: 1 | -1): boolean {
  const { view, doc } = runStore.getState()
  const container = turned(mode)
  if (container === undefined || !doc) return false
  const { scopes, index } = scopesAt(view, doc, container, uiStore.getState().iter)
  return !!scopes[index + by]
}

export function stepIteration(container: string, by: 1 | -1): void {
  const { view, doc } = runStore.getState()
  if (!doc) return
  const { scopes, index } = scopesAt(view, doc, container, uiStore.getState().iter)
  const opened = scopes.filter(Boolean).length
  const next = Math.max(0, Math.min(index + by, opened - 1))
  setIter(container, next === opened - 1 ? null : next)
  announce(`${nameOf(doc, container)}, ${next + 1} of ${scopes.length}`)
}

function back(): boolean | void {
  const canvas = document.querySelector('.canvas')
  const { blocks, edges, notes } = uiStore.getState().selection
  if (!canvas?.contains(document.activeElement)) return focusNode(blocks[0] ?? null)
  if (!blocks.length && !edges.length && !notes.length) return false
  select({})
  focusNode(null)
}

/** Beside the selected block. */
function pickerPlace(): { x: number; y: number } {
  const [id] = uiStore.getState().selection.blocks
  const node = id === undefined ? null : document.querySelector(`.react-flow__node[data-id="${CSS.escape(id)}"]`)
  const box = node?.getBoundingClientRect()
  return box ? { x: box.right + 12, y: box.top } : hereOnScreen()
}
