// The second half of the dialog for publishing: recorded runs, replayed with the draft. Which of them would have gone another way?

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { RunReplay } from '../../api/schemas'
import type { Document } from '../../api/types'
import { nameOf } from '../../document/document'
import { dropKept, play, type Which } from '../../net/backtests'
import { backtestStore, playAgain } from '../../state/backtest'
import { uiStore } from '../../state/ui'
import { countsOf, namesOf, pairOf, RESULTS, type Result } from '../../run/replays'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { Icon, type IconName } from '../../ui/icons'
import { Link } from '../../ui/navigation'
import { durationText } from '../../ui/time'
import { toast } from '../../ui/Toast'
import { messageOf, shortId } from '../../ui/words'
import './replay.css'

const SHOWN = 100
const NONE: readonly RunReplay[] = []
const CHOICES: readonly [Which, string][] = [
  [500, 'Last 500'],
  [50, 'Last 50'],
  ['kept', 'Kept as tests'],
]
const WORDS: Readonly<Record<Result, [word: string, end: string, icon: IconName]>> = {
  same: ['same', 'the same', 'succeeded'],
  other_way: ['other branch', 'goes another way', 'router'],
  would_call: ['would call', '', 'email'],
  changed: ['other values', 'has other values', 'edit'],
  failed: ['would fail', 'would fail', 'warning'],
  not_replayed: ['not replayed', '', 'help'],
  played: ['ended', '', 'succeeded'],
  not_called: ['not called', '', 'help'],
}

interface Played {
  runs: readonly RunReplay[]
  total: number
  ms: number
  done: boolean
  error: string | null
}

const NOTHING: Played = { runs: [], total: 0, ms: 0, done: false, error: null }

export default function PublishReplay({
  name,
  doc,
  first = 500,
}: {
  name: string
  doc: Document
  /** The runs that are replayed until others are chosen. */
  first?: Which
}): ReactElement {
  const [which, setWhich] = useState(first)
  const [only, setOnly] = useState<Result | null>(null)
  const [turn, setTurn] = useState(0)
  const played = usePlayed(name, doc, which, turn)
  const { runs, total, done, error } = played
  const runsKept = useStore(backtestStore, (s) => (s.old ? NONE : s.runs))
  const counts = countsOf(runs)
  const listed = runs.filter((run) => (only === null ? run.result !== 'same' : run.result === only))
  const shown = RESULTS.filter((result, i) => i < 3 || counts[result] > 0)
  const drop = async (run: string): Promise<void> => {
    try {
      await dropKept(run)
      playAgain()
      setTurn(turn + 1)
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <section className="replay" aria-label="Recorded runs, replayed" aria-busy={!done} data-testid="replay">
      <header>
        <h3>{titleOf(which, done ? runs.length : total || Number(which))}</h3>
        <span className="replay__note">
          {done ? `${durationText(played.ms)}, nothing was called outside` : 'Nothing is called outside'}
        </span>
        <select
          aria-label="Which runs"
          value={String(which)}
          onChange={(event) => {
            setWhich(CHOICES.find(([each]) => String(each) === event.target.value)![0])
            setOnly(null)
          }}
        >
          {CHOICES.map(([value, label]) => (
            <option key={value} value={String(value)}>
              {label}
            </option>
          ))}
        </select>
      </header>
      {error !== null ? (
        <p className="replay__none" role="alert">
          The runs could not be replayed: {error} <Button onClick={() => setTurn(turn + 1)}>Try again</Button>
        </p>
      ) : done && !runs.length ? (
        <p className="replay__none">
          {which === 'kept'
            ? 'No run is kept as a test yet. Run the workflow, then choose Keep this run as test in the menu of the bar.'
            : `No run of ${name} has ended yet.`}
        </p>
      ) : (
        <>
          <div className="replay__bar" aria-hidden="true">
            {RESULTS.filter((result) => counts[result] > 0).map((result) => (
              <i key={result} data-result={result} style={{ flexGrow: counts[result] }} />
            ))}
            <i style={{ flexGrow: Math.max(0, total - runs.length) }} />
          </div>
          <div className="replay__figures">
            {shown.map((result) => (
              <button
                key={result}
                type="button"
                data-result={result}
                data-testid={`replay-${result}`}
                aria-pressed={only === result}
                onClick={() => setOnly(only === result ? null : result)}
              >
                <b>{counts[result]}</b> {result === 'same' ? `of ${runs.length} same` : wordOf(result, runs)}
              </button>
            ))}
            {which !== 'kept' && runsKept.length ? (
              <span className="replay__kept" data-testid="replay-kept">
                of {runsKept.length} kept as tests: {countsOf(runsKept).same} same
              </span>
            ) : null}
            {counts.would_call ? (
              <Button
                kind="bare"
                data-testid="replay-evaluate"
                onClick={() => uiStore.setState({ overlay: 'evaluate' })}
              >
                Call models and compare
              </Button>
            ) : null}
          </div>
          {listed.length ? (
            <ul className="replay__rows" data-testid="replay-rows">
              {listed.slice(0, SHOWN).map((run) => (
                <Row key={run.run} run={run} doc={doc} onDrop={which === 'kept' ? drop : null} />
              ))}
              {listed.length > SHOWN ? <li className="replay__more">{listed.length - SHOWN} more</li> : null}
            </ul>
          ) : null}
        </>
      )}
    </section>
  )
}

function titleOf(which: Which, runs: number): string {
  if (which === 'kept') return 'Runs kept as tests, replayed'
  return runs === 1 ? 'The last run, replayed' : `The last ${runs || ''} runs, replayed`.replace('  ', ' ')
}

function Row({
  run,
  doc,
  onDrop,
}: {
  run: RunReplay
  doc: Document
  /** Only runs that are kept. */
  onDrop: ((run: string) => Promise<void>) | null
}): ReactElement {
  const [, end, icon] = WORDS[run.result]
  const text = run.result === 'would_call' || run.result === 'not_replayed' ? run.reason : end
  return (
    <li data-result={run.result}>
      <Icon name={icon} />
      <Link to={`/runs/${run.run}`} target="_blank" title={run.run}>
        {shortId(run.run)}
      </Link>
      <span className="replay__when">
        <Ago at={run.created_at_ms} />
      </span>
      <Change run={run} doc={doc} />
      <span className="replay__end" title={run.result === 'failed' ? run.reason : undefined}>
        {text}
        {onDrop ? (
          <Button kind="bare" icon="trash" iconOnly changes onClick={() => void onDrop(run.run)}>
            Keep no longer
          </Button>
        ) : null}
      </span>
    </li>
  )
}

/** The recorded result of the run, and its result with the draft. */
function Change({ run, doc }: { run: RunReplay; doc: Document }): ReactElement {
  const first = run.differences[0]
  const [before, now] = run.way
    ? [namesOf(run.way.before), run.result === 'failed' ? run.reason : namesOf(run.way.now)]
    : first?.value
      ? pairOf(first.value.a, first.value.b)
      : ['', '']
  const block = run.way ? '' : first && doc.blocks[first.block] ? nameOf(doc, first.block) : ''
  return (
    <span className="replay__change">
      {block ? <span className="replay__block">{block}</span> : null}
      {before || now ? (
        <>
          <del>{before}</del> <span aria-hidden="true">›</span> <ins>{now}</ins>
        </>
      ) : null}
    </span>
  )
}

/** `would send` if that is all they would do. */
function wordOf(result: Result, runs: readonly RunReplay[]): string {
  if (result !== 'would_call') return WORDS[result][0]
  const verbs = new Set(runs.filter((run) => run.result === result).map((run) => run.reason.split(' ')[1] ?? 'call'))
  return `would ${verbs.size === 1 ? [...verbs][0] : 'call'}`
}

function usePlayed(name: string, doc: Document, which: Which, turn: number): Played {
  const [played, setPlayed] = useState(NOTHING)
  useEffect(() => {
    const under = new AbortController()
    const began = performance.now()
    setPlayed(NOTHING)
    play(name, doc, which, (runs, total) => setPlayed((old) => ({ ...old, runs, total })), under.signal).then(
      () => setPlayed((old) => ({ ...old, ms: performance.now() - began, done: true })),
      (error: unknown) => under.signal.aborted || setPlayed((old) => ({ ...old, done: true, error: messageOf(error) })),
    )
    return () => under.abort()
  }, [name, doc, which, turn])
  return played
}
