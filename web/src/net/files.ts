// Files: uploads with progress, and what a file is as a value.

import type { FileValue, Json } from '../api/schemas'
import { ApiError, enc, query } from './http'
import type { Problem } from '../api/types'

const ID = /^file_[0-9a-f]{64}$/

/** The file that a value names; null when it is another value. */
export function fileIn(value: Json | undefined): FileValue | null {
  if (!value || typeof value !== 'object' || Array.isArray(value) || value.type !== 'file') return null
  const { id, name, media_type, size } = value
  if (typeof id !== 'string' || !ID.test(id)) return null
  return {
    type: 'file',
    id,
    name: typeof name === 'string' ? name : 'file',
    media_type: typeof media_type === 'string' ? media_type : '',
    size: typeof size === 'number' ? size : 0,
  }
}

export const fileUrl = (id: string): string => `/api/files/${enc(id)}`

/** `1.5 MB`, with 1,024 bytes to the kB, as elsewhere in the editor. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, 'kB'] : [bytes / 1024 ** 2, 'MB']
  return `${size < 10 ? Math.round(size * 10) / 10 : Math.round(size)} ${unit}`
}

/** `onProgress` gets parts of 1. `fetch` tells nothing of an upload that is under way. Raises ApiError; nothing after `signal`. */
export function upload(file: File, onProgress: (done: number) => void, signal: AbortSignal): Promise<FileValue> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    const refuse = (problem: Partial<Problem>): void => {
      const { status, responseText } = request
      let answered: Partial<Problem> = {}
      try {
        answered = JSON.parse(responseText) as Partial<Problem>
      } catch {
        // Something in between answered.
      }
      const plain: Problem = { type: '', title: '', status, code: 'upload_failed', detail: 'The upload failed.' }
      reject(new ApiError({ ...plain, ...problem, ...answered }))
    }
    request.upload.addEventListener('progress', (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total)
    })
    request.addEventListener('load', () => {
      if (request.status !== 201) return refuse({})
      const stored = fileIn(JSON.parse(request.responseText) as Json)
      if (stored) resolve(stored)
      else refuse({})
    })
    request.addEventListener('error', () => refuse({ detail: 'The connection was lost during the upload.' }))
    signal.addEventListener('abort', () => request.abort())
    request.open('POST', `/api/files${query({ name: file.name, media_type: file.type })}`)
    request.setRequestHeader('Content-Type', 'application/octet-stream')
    request.setRequestHeader('Accept', 'application/json')
    request.send(file)
  })
}
