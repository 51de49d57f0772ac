// The events of a run as a client follows them.

import type { EventOnWire, Json } from '../../src/api/schemas.js'

/** One event of the journal; or live text of a node: `node.delta`, with `data.text`, and 0 for `seq` as it is in no
 * journal. */
export type RunEvent = Omit<EventOnWire, 'data'> & { data: { [name: string]: Json } }

export function eventOf(text: string): RunEvent {
  const read = JSON.parse(text) as Partial<RunEvent> & { run: string; type: string; text?: string }
  if (read.type !== 'node.delta') return read as RunEvent
  const { run, type, key = null, text: written = '' } = read
  return { run, seq: 0, at_ms: 0, type, node: null, block: null, path: '', key, attempt: 0, data: { text: written } }
}
