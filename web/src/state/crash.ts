// A copy of the draft in this browser until the server has it, for a crash or a lost connection.

import type { Document } from '../api/types'

export interface LocalDraft {
  id: string
  document: Document
  /** Revision of the server's draft it was made from. */
  rev: number
  at: number
}

const NAME = 'weft'
const STORE = 'drafts'

/** Every function here gives up quietly when the browser has no IndexedDB: the server's draft is the one that counts. */
export async function keepLocal(draft: LocalDraft): Promise<void> {
  await run('readwrite', (store) => store.put(draft))
}

export async function readLocal(id: string): Promise<LocalDraft | null> {
  return ((await run('readonly', (store) => store.get(id))) as LocalDraft | undefined) ?? null
}

export async function dropLocal(id: string): Promise<void> {
  await run('readwrite', (store) => store.delete(id))
}

let opened: Promise<IDBDatabase> | null = null

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error ?? new Error('IndexedDB cannot be opened'))
  })
  return opened
}

async function run(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  try {
    const db = await open()
    return await new Promise((resolve, reject) => {
      const request = act(db.transaction(STORE, mode).objectStore(STORE))
      request.onsuccess = () => resolve(request.result as unknown)
      request.onerror = () => reject(request.error ?? new Error('IndexedDB refused'))
    })
  } catch {
    return undefined
  }
}
