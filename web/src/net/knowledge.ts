// Collections of documents that are searched. All raise ApiError.

import type { CollectionView, NewCollection, NewDocument, Passage } from '../api/schemas'
import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, post, send } from './http'

export type Mode = 'hybrid' | 'vector' | 'text'

const at = (name: string): string => `/api/knowledge/${enc(name)}`
const documentsOf = (name: string): string => `${at(name)}/documents`

export const knowledge = {
  list: async (): Promise<CollectionView[]> => (await get('/api/knowledge', answer(is.CollectionList))).collections,
  get: (name: string) => get(at(name), answer(is.CollectionView)),
  create: (made: NewCollection) => post('/api/knowledge', made, answer(is.CollectionView)),
  delete: (name: string) => send('DELETE', at(name), anything),
  documents: (name: string, after = '') => get(`${documentsOf(name)}?after=${enc(after)}`, answer(is.DocumentList)),
  add: (name: string, document: NewDocument) => send('PUT', documentsOf(name), answer(is.DocumentView), document),
  remove: (name: string, document: string) => send('DELETE', `${documentsOf(name)}?name=${enc(document)}`, anything),
  search: async (name: string, query: string, mode: Mode): Promise<Passage[]> =>
    (await post(`${at(name)}/search`, { query, mode }, answer(is.SearchResults))).results,
}

/** A file as a document. Its kind follows from its name: what browsers report differs between systems. */
export function documentOf(file: File): Promise<NewDocument> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => {
      const url = String(reader.result)
      resolve({ name: file.name, data: url.slice(url.indexOf(',') + 1) })
    })
    reader.addEventListener('error', () => reject(new Error(`${file.name} cannot be read.`)))
    reader.readAsDataURL(file)
  })
}
