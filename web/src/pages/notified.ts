// The outcome of a message about a wait, in words.

import type { NotificationView } from '../api/schemas'

/** `Sent to ada@example.org by email`; why not, if it was not. */
export function notifiedText({ to, channel, status, error }: NotificationView): string {
  const where = `to ${to} by ${channel}`
  if (status === 'sent') return `Sent ${where}`
  if (status === 'failed') return `Not sent ${where}${error ? `: ${error}` : ''}`
  if (status === 'cancelled') return `No longer sent ${where}`
  return `Being sent ${where}${error ? `. The last attempt failed: ${error}` : ''}`
}
