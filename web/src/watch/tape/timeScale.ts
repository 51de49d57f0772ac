// The time axis: idle stretches take a fixed share, so that three days of waiting do not flatten the run.

import type { WireEvent } from '../../api/types'

export const IDLE_MS = 5000

/** An idle stretch: `from` and `to` in Unix ms, `x` where its middle lies (0 to 1), `width` its share. */
export interface Gap {
  from: number
  to: number
  x: number
  width: number
}

export interface TimeScale {
  /** Unix ms to 0..1. */
  at: (ms: number) => number
  gaps: readonly Gap[]
}

interface Piece {
  from: number
  to: number
  x: number
  width: number
}

/** The axis from the first event to `end`. Stretches longer than `idleMs` without an event are gaps. */
export function timeScale(log: readonly WireEvent[], end: number, idleMs = IDLE_MS): TimeScale {
  if (!log.length) return { at: () => 0, gaps: [] }
  const first = log[0]!.at_ms
  const last = Math.max(end, log.at(-1)!.at_ms)
  const busy: [number, number][] = []
  let from = first
  let before = first
  for (let i = 1; i <= log.length; i++) {
    const at = i < log.length ? log[i]!.at_ms : last
    if (at - before > idleMs) {
      busy.push([from, before])
      from = at
    }
    before = Math.max(before, at)
  }
  busy.push([from, before])
  const idle = busy.length - 1
  const share = idle ? Math.min(0.16, 0.45 / idle) : 0
  const total = busy.reduce((sum, [a, b]) => sum + (b - a), 0)
  const room = 1 - share * idle
  const pieces: Piece[] = []
  const gaps: Gap[] = []
  let x = 0
  for (const [i, [a, b]] of busy.entries()) {
    const width = total ? ((b - a) / total) * room : room / busy.length
    pieces.push({ from: a, to: b, x, width })
    x += width
    const next = busy[i + 1]
    if (!next) break
    pieces.push({ from: b, to: next[0], x, width: share })
    gaps.push({ from: b, to: next[0], x: x + share / 2, width: share })
    x += share
  }
  return {
    gaps,
    at(ms) {
      let [low, high] = [0, pieces.length - 1]
      while (low < high) {
        const mid = (low + high + 1) >> 1
        if (pieces[mid]!.from <= ms) low = mid
        else high = mid - 1
      }
      const piece = pieces[low]!
      const part = piece.to > piece.from ? (ms - piece.from) / (piece.to - piece.from) : 0
      return Math.max(0, Math.min(1, piece.x + piece.width * Math.max(0, Math.min(1, part))))
    },
  }
}
