// One EventSource for one run: after any error it is opened again after the last event, 0.5 to 8 seconds later.
// (EventSource alone stops at an HTTP error.) Runs in a SharedWorker or in a tab, and depends on neither.

import { backoffMs } from '../api/core'
import { EVENT_TYPES } from '../api/schemas'
import { asDelta, asEvent } from './answers'
import { OUTPUT_BYTES_MAX } from './api'
import type { WireEvent } from '../api/types'

export type StreamMessage =
  /** Connected; `seq` is the last event this stream has passed on. */
  | { kind: 'open'; seq: number }
  | { kind: 'events'; events: WireEvent[] }
  | { kind: 'delta'; key: string; text: string }
  /** Not connected; tries again at `retryAt` (Unix ms). */
  | { kind: 'down'; retryAt: number }
  | { kind: 'ended' }

const BATCH_MS = 16

export class RunStream {
  seq: number
  isOpen = false
  private source: EventSource | null = null
  private timer: ReturnType<typeof setTimeout> | null = null
  private flusher: ReturnType<typeof setTimeout> | null = null
  private batch: WireEvent[] = []
  private tries = 0
  private readonly run: string
  private readonly emit: (message: StreamMessage) => void

  constructor(run: string, after: number, emit: (message: StreamMessage) => void) {
    this.run = run
    this.seq = after
    this.emit = emit
    this.connect()
  }

  close(): void {
    this.source?.close()
    this.source = null
    this.isOpen = false
    if (this.timer) clearTimeout(this.timer)
    if (this.flusher) clearTimeout(this.flusher)
    this.timer = this.flusher = null
  }

  /** Do not wait for the end of the pause. */
  retry(): void {
    if (!this.timer) return
    clearTimeout(this.timer)
    this.timer = null
    this.connect()
  }

  private connect(): void {
    const source = new EventSource(
      `/api/runs/${encodeURIComponent(this.run)}/events?after=${this.seq}&preview=${OUTPUT_BYTES_MAX}`,
    )
    this.source = source
    source.onopen = () => {
      this.tries = 0
      this.isOpen = true
      this.emit({ kind: 'open', seq: this.seq })
    }
    source.onerror = () => this.lost(source)
    source.addEventListener('node.delta', (message) => {
      const delta = asDelta(parsed(message))
      if (delta) this.emit({ kind: 'delta', key: delta.key, text: delta.text })
    })
    // What cannot be read is left out here; the next event shows the gap, and the page that fills it says what is wrong.
    const take = (message: Event): void => {
      const event = asEvent(parsed(message))
      if (event) this.take(event)
    }
    for (const type of EVENT_TYPES) source.addEventListener(type, take)
  }

  private take(event: WireEvent): void {
    if (event.seq <= this.seq) return
    this.seq = event.seq
    this.batch.push(event)
    if (event.type === 'run.finished') {
      this.flush()
      this.close()
      this.emit({ kind: 'ended' })
    } else this.flusher ??= setTimeout(() => this.flush(), BATCH_MS)
  }

  private flush(): void {
    if (this.flusher) clearTimeout(this.flusher)
    this.flusher = null
    const events = this.batch
    this.batch = []
    if (events.length) this.emit({ kind: 'events', events })
  }

  private lost(source: EventSource): void {
    if (this.source !== source) return
    source.close()
    this.source = null
    this.isOpen = false
    this.flush()
    const pause = backoffMs(++this.tries, Math.random())
    this.timer = setTimeout(() => {
      this.timer = null
      this.connect()
    }, pause)
    this.emit({ kind: 'down', retryAt: Date.now() + pause })
  }
}

function parsed(message: Event): unknown {
  try {
    return JSON.parse((message as MessageEvent<string>).data)
  } catch {
    return undefined
  }
}
