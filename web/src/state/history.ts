// Undo and redo of a draft, stored in this browser so that they survive a reload. The steps hold whole documents that
// share most of their parts; IndexedDB stores a shared part once, so a step costs what it changed. What cannot be stored, or no
// longer belongs to what the server has, is dropped: undo then starts empty.

import type { Document } from '../api/types'
import type { Command } from './commands'

export interface Step {
  label: string
  command: Command
}

export interface KeptHistory {
  id: string
  /** Revision of the draft when it was stored, and the document that the steps start from. */
  rev: number
  doc: Document
  undo: readonly Step[]
  redo: readonly Step[]
  at: number
}

/** Stored steps of each direction, and blocks of all their documents together (each names all of its blocks, shared or not). */
export const STEPS_KEPT_MAX = 50
export const BLOCKS_KEPT_MAX = 20_000
/** Drafts with a history in this browser; those not touched for longest go first. */
export const DRAFTS_KEPT_MAX = 20

const NAME = 'weft-history'
const STORE = 'steps'
const KEEP_AFTER_MS = 400

/** As many of the newest steps as fit. */
export function bounded(history: KeptHistory): KeptHistory {
  const blocks = Math.max(1, Object.keys(history.doc.blocks).length)
  const most = Math.max(0, Math.min(STEPS_KEPT_MAX, Math.floor(BLOCKS_KEPT_MAX / blocks / 2)))
  const newest = (steps: readonly Step[]): readonly Step[] => (most ? steps.slice(-most) : [])
  return { ...history, undo: newest(history.undo), redo: newest(history.redo) }
}

/** The stored steps for a draft as the server has it now; none when they belong to another document. */
export function fitting(stored: KeptHistory | null, doc: Document, rev: number): Pick<KeptHistory, 'undo' | 'redo'> {
  const none = { undo: [], redo: [] }
  // The revision may be one or two ahead: what is saved while a page goes away is never heard of. The document decides.
  if (!stored || stored.rev > rev || !Array.isArray(stored.undo) || !Array.isArray(stored.redo)) return none
  return JSON.stringify(stored.doc) === JSON.stringify(doc) ? { undo: stored.undo, redo: stored.redo } : none
}

/** Keep it soon: edits come in bursts. The last call within a burst counts. */
export function keepHistory(history: KeptHistory): void {
  pending = history
  timer ??= setTimeout(() => void writePending(), KEEP_AFTER_MS)
}

/** Write now what is waiting to be written. */
export async function writePending(): Promise<void> {
  if (timer !== null) clearTimeout(timer)
  timer = null
  const history = pending
  pending = null
  if (!history) return
  try {
    const store = (await open()).transaction(STORE, 'readwrite').objectStore(STORE)
    store.put(bounded(history))
    const all = await result(store.index('at').getAllKeys())
    for (const old of all.slice(0, Math.max(0, all.length - DRAFTS_KEPT_MAX))) store.delete(old)
  } catch {
    // No IndexedDB, or it is full: undo lasts as long as the page.
  }
}

export async function readHistory(id: string): Promise<KeptHistory | null> {
  try {
    const store = (await open()).transaction(STORE, 'readonly').objectStore(STORE)
    return ((await result(store.get(id))) as KeptHistory | undefined) ?? null
  } catch {
    return null
  }
}

let pending: KeptHistory | null = null
let timer: ReturnType<typeof setTimeout> | null = null
let opened: Promise<IDBDatabase> | null = null

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' }).createIndex('at', 'at')
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB cannot be opened'))
  })
  return opened
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB refused'))
  })
}
