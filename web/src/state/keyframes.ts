// The log of a run with a stored fold every 512 events, so that the fold at any event needs at most 512 more. The only mutable
// part of run state: it grows at the end and is never rewritten.

import type { WireEvent } from '../api/types'
import { emptyFold, fold, type RunFold, type Shape } from '../run'

export const KEYFRAME_EVERY = 512

export class Timeline {
  /** seq 1, 2, 3, ... without gaps: `log[seq - 1]`. */
  readonly log: WireEvent[] = []
  private readonly frames: RunFold[]
  private newest: RunFold
  private last: RunFold | null = null

  constructor(shape?: Shape) {
    this.newest = emptyFold(shape)
    this.frames = [this.newest]
  }

  /** The fold of everything. */
  get head(): RunFold {
    return this.newest
  }

  get seq(): number {
    return this.newest.seq
  }

  /** Take what follows without a gap; what is known already is ignored. False: there is a gap, fetch from `seq` on. */
  append(events: readonly WireEvent[]): boolean {
    const fresh: WireEvent[] = []
    let next = this.seq + 1
    let whole = true
    for (const event of events) {
      if (event.seq < next) continue
      if (event.seq > next) {
        whole = false
        break
      }
      fresh.push(event)
      next++
    }
    for (let at = 0; at < fresh.length; ) {
      const room = KEYFRAME_EVERY - (this.seq % KEYFRAME_EVERY)
      const part = fresh.slice(at, at + room)
      this.newest = fold(this.newest, part)
      this.log.push(...part)
      at += part.length
      if (this.seq % KEYFRAME_EVERY === 0) this.frames.push(this.newest)
    }
    return whole
  }

  /** The fold as of `seq` (0: before anything). Beyond the end is the end. */
  seek(seq: number): RunFold {
    const at = Math.max(0, Math.min(Math.floor(seq), this.seq))
    if (at === this.seq) return this.newest
    const frame = this.frames[Math.floor(at / KEYFRAME_EVERY)]!
    // Playing asks for one event after the other: continue from the last fold when it is nearer.
    const from = this.last && this.last.seq <= at && this.last.seq >= frame.seq ? this.last : frame
    this.last = fold(from, this.log.slice(from.seq, at))
    return this.last
  }
}
