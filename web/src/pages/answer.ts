// Answering a wait: where a refusal belongs, and whose answer counts.

import type { Json } from '../api/schemas'
import type { WaitView } from '../api/types'
import { ApiError } from '../net/api'
import type { FormField } from '../forms/fields/form'

/** Where the messages of a refused answer belong: by field, and the rest. */
export function errorsOf(
  error: unknown,
  fields: readonly FormField[],
): { byField: Record<string, string>; other: string } {
  const byField: Record<string, string> = {}
  if (!(error instanceof ApiError)) return { byField, other: error instanceof Error ? error.message : String(error) }
  const found = Array.isArray(error.problem.errors)
    ? (error.problem.errors as { pointer?: string; message?: string }[])
    : []
  let placed = 0
  for (const { pointer = '', message = '' } of found) {
    const name = pointer.split('/')[1]?.replace(/~1/g, '/').replace(/~0/g, '~')
    if (name === undefined || !fields.some((field) => field.name === name)) continue
    byField[name] ??= message
    placed++
  }
  return { byField, other: placed && placed === found.length ? '' : error.message }
}

/** Is the recorded answer of `wait` the one that was sent from here? Without `by` the server records who has signed in. */
export function isOurs(wait: WaitView, action: string | null, fields: Record<string, Json>, by: string): boolean {
  const answer = wait.response
  if (
    wait.status !== 'answered' ||
    (by !== '' && wait.answered_by !== by) ||
    typeof answer !== 'object' ||
    answer === null ||
    Array.isArray(answer)
  )
    return false
  return (
    (answer.action ?? null) === action &&
    Object.entries(fields).every(([name, value]) => JSON.stringify(answer[name]) === JSON.stringify(value))
  )
}

/** Why an answer does not count. */
export const tooLate = (wait: WaitView): string =>
  wait.status === 'answered' ? 'This was already answered' : 'This question is closed'

export function titleOf(wait: WaitView): string {
  if (wait.title) return wait.title
  return typeof wait.request.title === 'string' && wait.request.title ? wait.request.title : wait.label || wait.block
}
