// The two lines below the name of a block: its state in a run. Its sentence stays in the first of them when one line is enough.
// The size of the card never changes.

import type { ReactElement, ReactNode } from 'react'
import type { Block, BlockSpec } from '../api/types'
import { shortId } from '../ui/words'
import { roughly } from '../ui/time'
import { useClock } from '../ui/useClock'
import { Link } from '../ui/navigation'
import type { OpenWait } from '../run'
import { Icon } from '../ui/icons'
import { whySkipped, type Paint } from './paint'
import { reasonOf } from './reason'
import { shapeOf } from '../geometry/silhouette'

/** Links to runs that it waits for, so many of them. */
const CHILDREN_SHOWN = 2

/** `sentence`: what the block does, on the lines given. */
export function Lines({
  block,
  spec,
  paint,
  sentence,
}: {
  block: Block
  spec: BlockSpec | undefined
  paint: Paint
  sentence: (lines: 1 | 2) => ReactNode
}): ReactElement {
  const said = Words({ block, spec, paint })
  const { node } = paint
  const open = (node?.waits ?? []).flatMap((wait) => wait.child ?? [])
  const children = open.length ? open : node?.wait?.child === undefined ? [] : [node.wait.child]
  if (said && !children.length && (said.lines === 2 || !sentence(1))) return said.text
  if (!said && !children.length) return <>{sentence(2)}</>
  return (
    <>
      {said?.lines === 2 ? null : sentence(1)}
      {said && !children.length ? said.text : null}
      {children.length ? <Runs ids={children} /> : null}
    </>
  )
}

function Runs({ ids }: { ids: readonly string[] }): ReactElement {
  return (
    <p className="foot">
      {ids.slice(0, CHILDREN_SHOWN).map((child) => (
        <Link
          key={child}
          className="foot__link nodrag nopan"
          to={`/runs/${encodeURIComponent(child)}`}
          title={`Open run ${child}`}
        >
          Run {shortId(child)}
        </Link>
      ))}
      {ids.length > CHILDREN_SHOWN ? <span>and {ids.length - CHILDREN_SHOWN} more</span> : null}
    </p>
  )
}

interface Said {
  lines: 1 | 2
  text: ReactElement
}

/** A function and no component: the caller asks whether there is anything to show. */
export function Words({
  block,
  spec,
  paint,
}: {
  block: Block
  spec: BlockSpec | undefined
  paint: Paint
}): Said | null {
  const { status, node, text } = paint
  if (!node) return null
  const most = block.policy?.retry?.max_attempts ?? (spec as { attempts?: number } | undefined)?.attempts ?? 1
  const attempt =
    node.attempt > 1 || status === 'retrying'
      ? `Attempt ${Math.max(1, node.attempt)}${most > 1 ? ` of ${most}` : ''}`
      : null
  const one = (line: ReactElement): Said => ({ lines: 1, text: line })
  const two = (line: ReactElement): Said => ({ lines: 2, text: line })
  switch (status) {
    case 'running':
      if (text)
        return two(
          <p className="foot foot--ticker" data-testid="ticker">
            <span>{tail(text)}</span>
          </p>,
        )
      return node.lost ? one(<Restarted />) : attempt ? one(<p className="foot">{attempt}</p>) : null
    case 'retrying':
      return two(
        <>
          <p className="foot">
            {attempt}
            {node.dueAt === null ? null : (
              <>
                , next <In at={node.dueAt} />
              </>
            )}
          </p>
          {node.error ? (
            <p className="foot foot--error foot--one" title={node.error.message}>
              {node.error.code === 'attempt_lost' ? 'The server was restarted' : reasonOf(node.error.message)}
            </p>
          ) : null}
        </>,
      )
    case 'failed':
    case 'handled':
      // A container has no error of its own when a block inside it failed: its header counts them.
      if (!node.error && node.region) return null
      return two(
        <p className="foot foot--error" title={node.error?.message}>
          {attempt ? <span className="foot__quiet">{attempt} · </span> : null}
          {reasonOf(node.error?.message ?? 'Failed')}
        </p>,
      )
    case 'skipped':
      return one(
        <p className="foot foot--one foot--skipped" title={`Skipped: ${whySkipped(node)}`}>
          Skipped: {whySkipped(node)}
        </p>,
      )
    case 'waiting':
    case 'attention':
      return node.waits.length > 1
        ? one(<p className="foot foot--one foot--wait">{waitsFor(node.waits)}</p>)
        : node.wait
          ? one(<Waiting wait={node.wait} ticket={shapeOf(block, spec) === 'ticket'} />)
          : null
    case 'succeeded':
      return node.lost ? one(<Restarted />) : null
    default:
      return null
  }
}

/** "Waiting for 2 answers and 3 runs". */
function waitsFor(waits: readonly OpenWait[]): string {
  const count = (kinds: readonly OpenWait['kind'][], one: string): string => {
    const found = waits.filter((wait) => kinds.includes(wait.kind)).length
    return found ? `${found} ${one}${found > 1 ? 's' : ''}` : ''
  }
  const parts = [
    count(['approval', 'form'], 'answer'),
    count(['child'], 'run'),
    count(['signal', 'webhook', 'timer', 'attention'], 'other event'),
  ].filter(Boolean)
  return `Waiting for ${parts.join(' and ')}`
}

/** Its attempt was lost with the server, and another one was made. */
function Restarted(): ReactElement {
  return (
    <p className="foot foot--one foot--restored">
      <Icon name="restored" size={14} /> Resumed after a restart
    </p>
  )
}

/** `ticket`: its stub has the time. */
function Waiting({ wait, ticket }: { wait: OpenWait; ticket: boolean }): ReactElement {
  const now = useClock(1000)
  const timed = wait.kind === 'timer' && wait.dueAt !== null
  const what = {
    approval: 'an answer',
    form: 'an answer',
    timer: 'its due time',
    signal: `signal “${wait.title}”`,
    webhook: 'a request',
    child: 'another run',
    attention: 'your decision',
  }[wait.kind]
  return (
    <p className="foot foot--one foot--wait">
      {timed ? (
        <>
          Continues <In at={wait.dueAt!} />
        </>
      ) : (
        <>
          Waiting for {what}
          {ticket ? null : ` · ${roughly(now - wait.openedAt)}`}
        </>
      )}
    </p>
  )
}

/** "in 4 s"; counts down. */
function In({ at }: { at: number }): ReactElement {
  const now = useClock(500)
  return <>in {roughly(Math.max(0, at - now))}</>
}

const TICKER_CHARS = 48

/** The last words of a streamed text. */
function tail(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  if (line.length <= TICKER_CHARS) return line
  const cut = line.slice(-TICKER_CHARS)
  return `…${cut.slice(cut.indexOf(' ') + 1)}`
}
