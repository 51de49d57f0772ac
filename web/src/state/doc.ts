// The draft that is edited: the document, its undo stacks, and saving. `dispatch` is the only way a document changes.

import { createStore } from 'zustand/vanilla'
import { placed } from './placed'
import { api, ApiError, DraftConflict } from '../net/api'
import { repair } from '../net/repair'
import type { Repaired } from '../api/types'
import type { Diagnostic, Task } from '../api/schemas'
import type { BlockSpec, Document, Draft } from '../api/types'
import { applyCommand, labelOf, type Command } from './commands'
import { dropLocal, keepLocal, readLocal, type LocalDraft } from './crash'
import { emptyDocument, type Specs } from '../document/document'
import { fitting, keepHistory, readHistory, writePending, type Step } from './history'

export const UNDO_MAX = 200
const SAVE_AFTER_MS = 800
const COALESCE_MS = 1000

/** saved: the server has it. dirty: it will be sent soon. offline: it is stored here until it can be sent. */
export type Saving = 'saved' | 'dirty' | 'saving' | 'offline' | 'conflict' | 'refused'

export interface DocState {
  /** Id of the draft; null when no draft is open. */
  id: string | null
  doc: Document
  rev: number
  /** The stored version it began from or was last saved as, of which workflow, and the revision it had then. */
  baseVersion: number | null
  baseName: string | null
  baseRev: number | null
  /** Set when the stored document could not be drawn unchanged: what was left out. `repaired.original` is the stored one. */
  repaired: Repaired | null
  /** Findings of the server about the last saved document. */
  diagnostics: readonly Diagnostic[]
  /** What is left before it runs, of the same document. */
  tasks: readonly Task[]
  undo: readonly Step[]
  redo: readonly Step[]
  saving: Saving
  savedAt: number | null
  /** What the server has, when it was saved elsewhere in between. */
  conflict: Draft | null
  /** Edits of this browser that never reached the server. */
  restorable: LocalDraft | null
  /** Nothing can be changed: a run is shown, or the window is too small. */
  readonly: boolean
  error: string | null
}

export const docStore = createStore<DocState>(closedDraft)
export const specsStore = createStore<{ specs: Specs; list: readonly BlockSpec[] }>(() => ({
  specs: new Map(),
  list: [],
}))

export function specsOf(): Specs {
  return specsStore.getState().specs
}

/** The open document as the server has it, with the parts that cannot be drawn, until it is edited. */
export function storedDocument(): unknown {
  const { doc, repaired } = docStore.getState()
  return repaired?.document === doc ? repaired.original : doc
}

/** Block types, loaded once. */
export async function loadSpecs(): Promise<void> {
  if (!specsStore.getState().list.length) await reloadSpecs()
}

/** After a connector was added or deleted. Raises ApiError. */
export async function reloadSpecs(): Promise<void> {
  const list = await api.blocks()
  specsStore.setState({ list, specs: new Map(list.map((spec) => [spec.type, spec])) })
}

/** Open a draft. Raises ApiError. Unsaved edits of this browser are offered in `restorable`. */
export async function openDraft(id: string): Promise<void> {
  const left = closeDraft()
  const opened = generation
  await left
  const [draft, local, history] = await Promise.all([api.draft(id), readLocal(id), readHistory(id), loadSpecs()])
  if (opened !== generation) return
  const edits = local && { ...local, document: repair(local.document).document }
  const lost = edits && JSON.stringify(edits.document) !== JSON.stringify(draft.document) ? edits : null
  if (local && !lost) void dropLocal(id)
  const doc = placed(draft.document, specsOf())
  docStore.setState({
    ...closedDraft(),
    id,
    doc,
    rev: draft.rev,
    baseVersion: draft.base_version,
    baseName: draft.base_name ?? null,
    baseRev: draft.base_rev ?? null,
    repaired: draft.repaired ? { ...draft.repaired, document: doc } : null,
    savedAt: draft.updated_at_ms,
    restorable: lost,
    diagnostics: draft.diagnostics ?? [],
    tasks: draft.tasks ?? [],
    ...fitting(history, draft.document, draft.rev),
  })
}

/** Save what is open, then forget it. */
export async function closeDraft(): Promise<void> {
  generation++
  const { id } = docStore.getState()
  if (id === null) return
  await Promise.all([flush(), writePending()])
  if (docStore.getState().id === id) docStore.setState(closedDraft())
}

/** Do a command. With the same `coalesce` key within a second it joins the step before, so that one undo takes both back. */
export function dispatch(command: Command, coalesce?: string): boolean {
  const state = docStore.getState()
  if (state.readonly) return false
  const [doc, inverse] = applyCommand(state.doc, command, specsOf())
  if (doc === state.doc) return false
  const now = Date.now()
  const joins =
    coalesce !== undefined &&
    coalesce === lastKey &&
    now - lastAt < COALESCE_MS &&
    state.undo.length > 0 &&
    !state.redo.length
  lastKey = coalesce
  lastAt = now
  const undo = joins
    ? state.undo
    : [...state.undo, { label: labelOf(command, state.doc), command: inverse }].slice(-UNDO_MAX)
  docStore.setState({ doc, undo, redo: [] })
  changed()
  return true
}

export function undo(): string | null {
  return travel('undo', 'redo')
}

export function redo(): string | null {
  return travel('redo', 'undo')
}

/** Send what is not sent yet. Resolves when the server has it, or cannot have it. */
export async function flush(): Promise<void> {
  if (timer !== null) clearTimeout(timer)
  timer = null
  // One request at a time; what was typed meanwhile goes with the next.
  saving = saving.then(save, save)
  return saving
}

/** Ask the server again what is wrong and what is left: a connection or a secret that was added changes no document. */
export async function recheck(): Promise<void> {
  await flush()
  const { id, rev } = docStore.getState()
  if (id === null) return
  const { diagnostics = [], tasks = [], rev: theirs } = await api.draft(id)
  const now = docStore.getState()
  if (now.id === id && now.rev === rev && theirs === rev) docStore.setState({ diagnostics, tasks })
}

/** After a conflict: keep what the server has, overwrite it with ours, or make a copy of ours (its id is returned). */
export async function settle(choice: 'theirs' | 'mine' | 'copy'): Promise<string | null> {
  const { conflict, doc, id } = docStore.getState()
  if (!conflict || !id) return null
  let copied: string | null = null
  if (choice === 'copy') copied = (await api.createDraft(doc, `${doc.name ?? 'workflow'}-copy`)).id
  // Settled by another press meanwhile, or the page was left.
  if (docStore.getState().conflict !== conflict) return copied
  docStore.setState({ conflict: null, rev: conflict.rev, saving: 'dirty' })
  if (choice === 'mine') {
    await flush()
    return null
  }
  const [next, inverse] = applyCommand(docStore.getState().doc, { type: 'replaceDoc', doc: conflict.document })
  docStore.setState((state) => ({
    doc: next,
    undo: [...state.undo, { label: 'use their version', command: inverse }],
    redo: [],
    saving: 'saved',
    savedAt: conflict.updated_at_ms,
    diagnostics: conflict.diagnostics ?? [],
    tasks: conflict.tasks ?? [],
  }))
  void dropLocal(id)
  return copied
}

/** Take the edits back that a crash left here, or forget them. */
export function restoreLocal(take: boolean): void {
  const { restorable, id } = docStore.getState()
  docStore.setState({ restorable: null })
  if (!restorable || !id) return
  if (take) dispatch({ type: 'replaceDoc', doc: restorable.document })
  else void dropLocal(id)
}

let timer: ReturnType<typeof setTimeout> | null = null
/** Counts what was opened and closed: an answer that comes later belongs to something that is shown no more. */
let generation = 0
/** What was sent for this revision and not answered: the server may have any of it all the same. */
let unanswered: { id: string; rev: number; docs: Set<Document> } | null = null
let saving: Promise<void> = Promise.resolve()
let lastKey: string | undefined
let lastAt = 0

function travel(from: 'undo' | 'redo', to: 'undo' | 'redo'): string | null {
  const state = docStore.getState()
  const step = state[from].at(-1)
  if (!step || state.readonly) return null
  const [doc, inverse] = applyCommand(state.doc, step.command, specsOf())
  lastKey = undefined
  docStore.setState({
    doc,
    [from]: state[from].slice(0, -1),
    [to]: [...state[to], { label: step.label, command: inverse }],
  } as Partial<DocState>)
  changed()
  return step.label
}

function changed(): void {
  const { id, doc, rev, saving: now, undo, redo } = docStore.getState()
  if (!id) return
  keepHistory({ id, rev, doc, undo, redo, at: Date.now() })
  void keepLocal({ id, document: doc, rev, at: Date.now() })
  if (now === 'conflict') return
  if (now !== 'dirty') docStore.setState({ saving: 'dirty' })
  if (timer !== null) clearTimeout(timer)
  timer = setTimeout(() => void flush(), SAVE_AFTER_MS)
}

async function save(): Promise<void> {
  const { id, doc, rev, saving: now } = docStore.getState()
  if (!id || now === 'saved' || now === 'conflict') return
  docStore.setState({ saving: 'saving' })
  const here = (): boolean => docStore.getState().id === id
  try {
    const saved = await api.saveDraft(id, rev, doc, doc.name ?? 'workflow')
    if (!here()) return
    unanswered = null
    const still = docStore.getState().doc === doc
    docStore.setState({
      rev: saved.rev,
      savedAt: saved.updated_at_ms,
      diagnostics: saved.diagnostics,
      tasks: saved.tasks,
      saving: still ? 'saved' : 'dirty',
      error: null,
    })
    if (still) void dropLocal(id)
  } catch (error) {
    if (!here()) return
    if (error instanceof DraftConflict) {
      if (!isUnanswered(id, rev, error.theirs)) return docStore.setState({ saving: 'conflict', conflict: error.theirs })
      docStore.setState({ rev: error.theirs.rev, saving: 'dirty' })
      return save()
    }
    const message = error instanceof Error ? error.message : String(error)
    const lost = error instanceof ApiError && (error.status === 0 || error.status >= 500)
    if (lost) {
      if (unanswered?.id !== id || unanswered.rev !== rev) unanswered = { id, rev, docs: new Set() }
      unanswered.docs.add(doc)
    }
    docStore.setState({ saving: lost ? 'offline' : 'refused', error: message })
    if (lost) timer = setTimeout(() => void flush(), SAVE_AFTER_MS * 5)
  }
}

/** Is what the server has a save of ours, whose answer was lost? */
function isUnanswered(id: string, rev: number, theirs: Draft): boolean {
  if (unanswered?.id !== id || unanswered.rev !== rev || theirs.rev !== rev + 1) return false
  const text = JSON.stringify(theirs.document)
  return [...unanswered.docs].some((doc) => JSON.stringify(doc) === text)
}

function closedDraft(): DocState {
  return {
    id: null,
    doc: emptyDocument(),
    rev: 0,
    baseVersion: null,
    baseName: null,
    baseRev: null,
    repaired: null,
    diagnostics: [],
    tasks: [],
    undo: [],
    redo: [],
    saving: 'saved',
    savedAt: null,
    conflict: null,
    restorable: null,
    readonly: false,
    error: null,
  }
}
