// Questions about replays of recorded runs: what a block would do in them, and which runs would do something else.

import type { NodeReplay, RunReplay } from '../api/schemas'

export type Tone = 'ok' | 'thread' | 'wait' | 'err' | 'quiet'

export interface Chip {
  tone: Tone
  text: string
  /** All of it, for a pointer that rests there. */
  title: string
}

const SHORT = 16

/** The worst result of one block in all runs. Null if none of them reached it. */
export function chipOf(block: string, runs: readonly RunReplay[]): Chip | null {
  const ran = runs.filter((run) => run.blocks[block] !== undefined)
  if (!ran.length) return null
  const own = (run: RunReplay): NodeReplay | undefined => run.differences.find((each) => each.block === block)
  const those = (result: string): readonly RunReplay[] => ran.filter((run) => run.blocks[block] === result)
  const failing = ran.filter((run) => own(run)?.error)
  if (failing.length) return chip('err', `${failing.length} would fail`, own(failing[0]!)!.error)
  const calls = those('would_call')
  if (calls.length) {
    const would = own(calls[0]!)?.would ?? 'call'
    return chip('wait', `${calls.length} would ${would.split(' ')[0]}`, `would ${would}`)
  }
  const others = ran.filter((run) => run.way?.block === block)
  if (others.length) {
    const { before, now } = others[0]!.way!
    return chip('thread', `${others.length} other branch`, `${namesOf(before)} → ${namesOf(now)}`)
  }
  const changed = those('changed')
  if (changed.length) {
    const value = own(changed[0]!)?.value
    const many = changed.length > 1 ? `, ${changed.length} runs` : ''
    if (!value) return chip('thread', `${changed.length} would differ`, '')
    if (value.a === null && !value.pointer) return chip('thread', `${changed.length} would run now`, value.b ?? '')
    const [before, now] = pairOf(value.a, value.b)
    return chip(
      'thread',
      `${before} → ${now}${many}`,
      `${value.pointer || 'output'}: ${value.a ?? 'nothing'} → ${value.b ?? 'nothing'}`,
    )
  }
  const same = those('same').length
  if (same < ran.length) {
    const left = ran.length - same
    return chip(
      'quiet',
      `${left} ${those('unknown').length ? 'unknown' : 'not reached'}`,
      `${same} of ${ran.length} same`,
    )
  }
  return chip('ok', `${same} of ${ran.length} same`, 'The same in all runs that are kept as tests')
}

const chip = (tone: Tone, text: string, title: string): Chip => ({ tone, text, title })

/** Names of blocks that follow, for people. */
export const namesOf = (names: readonly string[]): string => names.join(', ') || 'nothing'

/** JSON of a value, cut to what fits a chip; quotes around a text go. */
export function short(json: string | null): string {
  if (json === null) return 'nothing'
  const text = /^"[^"\\]*"$/.test(json) ? json.slice(1, -1) : json
  return text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text
}

/** Two values that differ, both short: of long ones the part where they do. */
export function pairOf(a: string | null, b: string | null): [string, string] {
  if (a === null || b === null || Math.max(a.length, b.length) <= SHORT) return [short(a), short(b)]
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  const from = Math.max(0, same - 4)
  if (from === 0) return [short(a), short(b)]
  const part = (text: string): string => `…${short(text.slice(from).replace(/"$/, ''))}`
  return [part(a), part(b)]
}

export type Result = RunReplay['result']
export const RESULTS: readonly Result[] = [
  'same',
  'other_way',
  'would_call',
  'changed',
  'failed',
  'not_replayed',
  'played',
  'not_called',
]

export function countsOf(runs: readonly RunReplay[]): Record<Result, number> {
  const counts = Object.fromEntries(RESULTS.map((result) => [result, 0])) as Record<Result, number>
  for (const run of runs) counts[run.result]++
  return counts
}
