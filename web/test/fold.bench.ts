// How long a long run takes to fold, whole (as it is loaded: in pages), live (as it comes: a few events at a time), and how long a
// jump of the Tape takes. `npm run bench`; wall time of this machine, best of five, and processor time, which other work disturbs less.

import { Timeline } from '../src/state/keyframes'
import { shapeOf } from '../src/run'
import { specs } from './help'
import { longDocument, longJournal } from './long'

const SIZE = 50_000
const PAGE = 2000

const best = (times: number, act: () => number): number => Math.min(...Array.from({ length: times }, act))
const timed = (act: () => void): number => {
  const start = performance.now()
  act()
  return performance.now() - start
}

for (const kind of ['loop', 'parallel'] as const) {
  const shape = shapeOf(longDocument(kind), specs)
  const events = longJournal(kind, SIZE)
  let longest = 0
  let cpu = Infinity
  const pages = best(5, () => {
    const timeline = new Timeline(shape)
    longest = 0
    const before = process.cpuUsage()
    const took = timed(() => {
      for (let at = 0; at < events.length; at += PAGE)
        longest = Math.max(
          longest,
          timed(() => timeline.append(events.slice(at, at + PAGE))),
        )
    })
    cpu = Math.min(cpu, process.cpuUsage(before).user / 1000)
    return took
  })
  const whole = new Timeline(shape)
  whole.append(events)
  const live = best(3, () => {
    const timeline = new Timeline(shape)
    timeline.append(events.slice(0, events.length - 5000))
    return timed(() => {
      for (let at = events.length - 5000; at < events.length; at += 5) timeline.append(events.slice(at, at + 5))
    })
  })
  const jumps = Array.from({ length: 200 }, (_, i) => timed(() => whole.seek((i * 7919) % whole.seq))).sort(
    (a, b) => a - b,
  )
  const steps = timed(() => {
    for (let i = 0; i < 500; i++) whole.seek(20_000 + i)
  })
  console.log(
    `${kind.padEnd(8)} ${events.length} events, ${whole.head.nodes.size} nodes: ${pages.toFixed(0)} ms in pages of ${PAGE} (${cpu.toFixed(0)} ms of processor time, longest page ${longest.toFixed(1)} ms); ` +
      `last 5,000 live, five at a time: ${live.toFixed(0)} ms; jump: median ${jumps[100]!.toFixed(2)} ms, worst ${jumps.at(-1)!.toFixed(2)} ms; 500 steps: ${steps.toFixed(0)} ms`,
  )
}
