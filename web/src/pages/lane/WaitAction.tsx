// What can be done about a wait of a durable function: answer it, send its signal, copy its address, open its run.

import type { ReactElement } from 'react'
import type { WaitView } from '../../api/types'
import { isForPeople } from '../../edit/shell/waiting'
import type { LaneItem } from '../../run/lane'
import { Button } from '../../ui/Button'
import { Link } from '../../ui/navigation'
import { useWhyNot } from '../../watch/run/useWhyNot'
import { CopyLink, SendSignal } from '../WaitActions'

export function WaitAction({
  item,
  view,
  onAnswer,
}: {
  item: LaneItem
  view: WaitView | undefined
  onAnswer: (wait: WaitView) => void
}): ReactElement | null {
  const why = useWhyNot()
  if (item.wait?.child)
    return (
      <span className="lane__action" onClick={stop}>
        <Link className="button" to={`/runs/${item.wait.child}`}>
          Open run
        </Link>
      </span>
    )
  if (!view) return null
  return (
    <span className="lane__action" onClick={stop}>
      {isForPeople(view) && view.link ? (
        <Button kind="primary" why={why} onClick={() => onAnswer(view)}>
          Answer
        </Button>
      ) : null}
      {view.kind === 'signal' && view.name ? <SendSignal view={view} why={why} /> : null}
      {view.kind === 'webhook' && view.link ? <CopyLink link={view.link} what="URL" /> : null}
    </span>
  )
}

/** A click on an action does not choose the row. */
const stop = (event: { stopPropagation: () => void }): void => event.stopPropagation()
