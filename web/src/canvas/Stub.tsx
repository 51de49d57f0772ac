// The stub of a ticket: how long it waits at most, how much of that is left, or how long it has waited.

import type { ReactElement } from 'react'
import type { Json } from '../api/schemas'
import type { Block } from '../api/types'
import type { NodeState } from '../run'
import { roughly } from '../ui/time'
import { useClock } from '../ui/useClock'

export function Stub({ block, node }: { block: Block; node: NodeState | undefined }): ReactElement | null {
  const open = node?.status === 'waiting' ? node.wait : null
  if (open?.dueAt != null)
    return (
      <span className="card__stub" title={new Date(open.dueAt).toLocaleString()}>
        <Left until={open.dueAt} />
      </span>
    )
  if (open)
    return (
      <span className="card__stub">
        <span>for</span>
        <Waited since={open.openedAt} />
      </span>
    )
  const most = mostOf(block)
  if (most === null) return null
  return (
    <span className="card__stub">
      {block.type === 'wait' ? null : <span>up to</span>}
      <span>{most}</span>
    </span>
  )
}

function Left({ until }: { until: number }): ReactElement {
  const now = useClock(1000)
  return (
    <>
      <span>{roughly(Math.max(0, until - now))}</span>
      <span>left</span>
    </>
  )
}

function Waited({ since }: { since: number }): ReactElement {
  const now = useClock(1000)
  return <span>{roughly(Math.max(0, now - since))}</span>
}

/** The longest that it waits, in words; null when the document does not set it. */
function mostOf({ type, params }: Block): string | null {
  const seconds: Json | undefined = type === 'wait' ? params?.seconds : params?.expires_in_s
  return typeof seconds === 'number' && seconds > 0 ? roughly(seconds * 1000) : null
}
