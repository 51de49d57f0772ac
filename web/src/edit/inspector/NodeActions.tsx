// What can be done about a block of a run: retry it now while it waits for that, and go to the run it started. To run again from a
// block is a new run, which the head of the page starts.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api, ApiError } from '../../net/api'
import { Link, navigate } from '../../ui/navigation'
import { runStore } from '../../state/live'
import type { NodeState } from '../../run'
import { Button } from '../../ui/Button'
import { Status } from '../../ui/status'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { useWhyNot } from '../../watch/run/useWhyNot'

const WORDS: Record<string, string> = {
  now: 'The next attempt starts now.',
  from_block: 'Started a new run from this block.',
  from_node: 'Started a new run from this block.',
  whole_container: 'Started a new run from the container.',
}

export function NodeActions({ node }: { node: NodeState }): ReactElement | null {
  const id = useStore(runStore, (s) => s.id)
  const children = useStore(runStore, (s) => s.meta?.children)
  const notNow = useWhyNot()
  const mayNot = useReadOnly()
  const [busy, setBusy] = useState(false)
  const started = (children ?? []).filter((child) => child.key === node.key)
  const why = mayNot ?? notNow ?? (busy ? 'Starting' : null)
  if (node.status !== 'retrying' && !started.length) return null
  const retry = async (): Promise<void> => {
    if (id === null) return
    setBusy(true)
    try {
      const answer = await api.retryNode(id, node.key)
      toast(WORDS[answer.how] ?? 'Started.', 'ok')
      if (answer.how !== 'now') navigate(`/runs/${answer.run}`)
    } catch (error) {
      toast(
        `${error instanceof Error ? error.message : String(error)}${error instanceof ApiError && error.hint ? ` ${error.hint}` : ''}`,
        'err',
      )
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="nodeactions">
      {node.status === 'retrying' ? (
        <Button icon="redo" data-testid="retry-node" why={why} onClick={() => void retry()}>
          Retry now
        </Button>
      ) : null}
      {started.length ? (
        <ul className="nodeactions__children" aria-label="Runs started by this block">
          {started.map((child) => (
            <li key={child.run}>
              <Status status={child.status} />{' '}
              <Link to={`/runs/${child.run}`}>
                {child.workflow}
                {child.version === null ? '' : ` v${child.version}`}
              </Link>
              {started.length > 1 ? <span className="label"> attempt {child.attempt}</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
