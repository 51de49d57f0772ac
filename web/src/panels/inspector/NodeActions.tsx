// What can be done about a block of a run: run it again, and go to the run it started.

import { useState, type ReactElement } from 'react'
import { api, ApiError } from '../../net/api'
import { Link, navigate } from '../../routes'
import { runStore } from '../../state/live'
import { isEnded, type NodeState } from '../../state/run'
import { useSelect } from '../../state/store'
import { Button } from '../../ui/Button'
import { Status } from '../../ui/status'
import { toast } from '../../ui/Toast'
import { useWhyNot } from '../../pages/run/useWhyNot'

const WORDS: Record<string, string> = {
  now: 'Its next attempt starts now.', from_block: 'A new run: this block and what follows it run again.', from_node: 'A new run: this block and what follows it run again.',
  whole_container: 'A new run: the container around it runs again as a whole.',
}

export function NodeActions({ node }: { node: NodeState }): ReactElement | null {
  const id = useSelect(runStore, (s) => s.id)
  const ended = useSelect(runStore, (s) => isEnded(s.head.status))
  const children = useSelect(runStore, (s) => s.meta?.children)
  const notNow = useWhyNot()
  const [busy, setBusy] = useState(false)
  const started = (children ?? []).filter((child) => child.key === node.key)
  const why = notNow ?? (busy ? 'It is being started' : !ended && node.wait?.kind === 'attention' && node.status === 'waiting' ? 'It waits for an answer: with that it can be run again' : !ended && node.status !== 'retrying' ? 'The run has not ended: what has run stays as it is until then' : null)
  const retry = async (): Promise<void> => {
    if (id === null) return
    setBusy(true)
    try {
      const answer = await api.retryNode(id, node.key)
      toast(WORDS[answer.how] ?? 'It runs again.', 'ok')
      if (answer.how !== 'now') navigate(`/runs/${answer.run}`)
    } catch (error) {
      toast(`${error instanceof Error ? error.message : String(error)}${error instanceof ApiError && error.hint ? ` ${error.hint}` : ''}`, 'err')
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="nodeactions">
      <Button icon="redo" data-testid="retry-node" why={why} onClick={() => void retry()}>{node.status === 'retrying' ? 'Retry now' : 'Retry this block'}</Button>
      {started.length ? (
        <ul className="nodeactions__children" aria-label="Runs it started">
          {started.map((child) => (
            <li key={child.run}><Status status={child.status} /> <Link to={`/runs/${child.run}`}>{child.workflow}{child.version === null ? '' : ` v${child.version}`}</Link>{started.length > 1 ? <span className="label"> attempt {child.attempt}</span> : null}</li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
