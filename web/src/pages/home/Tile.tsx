// One workflow or draft on the front page: its picture, its name and state, one sentence, what starts it next, its last runs.

import type { ReactElement, ReactNode } from 'react'
import type { ShortRun } from '../../api/schemas'
import type { BlockSpec, Document } from '../../api/types'
import { Ago } from '../../ui/Ago'
import { Icon, type IconName } from '../../ui/icons'
import { Link } from '../../ui/navigation'
import { glyphOf } from '../../ui/status'
import { Thumb } from '../Thumb'
import { barsText, heightOf, type Pill } from './words'

export interface TileProps {
  name: string
  /** The address that a click opens, or its action. */
  to: string | (() => void)
  doc: Document | null
  specs: ReadonlyMap<string, BlockSpec>
  states?: Readonly<Record<string, string>>
  pill: Pill
  /** The run that the state is of. */
  run?: string | undefined
  about: string
  start: readonly [IconName, ReactNode]
  runs?: readonly ShortRun[]
  /** The address of the list of them. */
  list?: string
  /** On the picture, while the card is pointed at or has the keyboard. */
  actions: ReactNode
}

const GLYPHS = { run: 'running', ok: 'succeeded', err: 'failed', wait: 'waiting', quiet: null } as const

export function Tile(props: TileProps): ReactElement {
  const { name, to, doc, specs, states, pill, run, about, start, runs = [], list, actions } = props
  const glyph = GLYPHS[pill.tone]
  const state = (
    <>
      {glyph ? <Icon name={glyphOf(glyph)!} size={11} /> : null}
      {pill.words}
      {pill.at === undefined ? null : (
        <>
          {pill.words ? ' ' : <span className="visually-hidden">Succeeded</span>}
          <Ago at={pill.at} />
        </>
      )}
    </>
  )
  return (
    <li className="tile" data-testid={`card-${name}`}>
      <div className="tile__picture">{doc ? <Thumb doc={doc} specs={specs} states={states ?? {}} /> : null}</div>
      <div className="tile__body">
        <div className="tile__head">
          <h2>
            {typeof to === 'string' ? (
              <Link className="tile__name" to={to} title={name}>
                {name}
              </Link>
            ) : (
              <button type="button" className="tile__name" title={name} onClick={to}>
                {name}
              </button>
            )}
          </h2>
          {run ? (
            <Link className="tile__pill" data-tone={pill.tone} to={`/runs/${run}`}>
              {state}
            </Link>
          ) : (
            <span className="tile__pill" data-tone={pill.tone}>
              {state}
            </span>
          )}
        </div>
        <p className="tile__about" title={about}>
          {about}
        </p>
        <div className="tile__foot">
          <Icon name={start[0]} size={12} />
          <span className="tile__start">{start[1]}</span>
          {runs.length && list ? (
            <Link className="tile__bars" to={runs.some(isFailed) ? `${list}&status=failed` : list}>
              <Bars runs={runs} />
            </Link>
          ) : null}
        </div>
      </div>
      <div className="tile__actions">{actions}</div>
    </li>
  )
}

const PITCH = 5
const isFailed = (run: ShortRun): boolean => run.status === 'failed'

function Bars({ runs }: { runs: readonly ShortRun[] }): ReactElement {
  const longest = Math.max(0, ...runs.map((run) => run.duration_ms ?? 0))
  const text = barsText(runs)
  return (
    <svg width={runs.length * PITCH} height="16" role="img" aria-label={text}>
      <title>{text}</title>
      {runs.map((run, n) => {
        const height = heightOf(run, longest)
        return (
          <rect key={run.id} data-status={run.status} x={n * PITCH} y={15 - height} width="3" height={height} rx="1" />
        )
      })}
    </svg>
  )
}
