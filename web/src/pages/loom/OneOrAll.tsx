// The switch between one run of a workflow and all of them: the page of the run, or the loom.

import type { ReactElement } from 'react'
import { Link } from '../../ui/navigation'
import './switch.css'

export function OneOrAll({
  workflow,
  run,
  here = 'all',
}: {
  workflow: string
  /** The run to show, or null if there is none. */
  run: string | null
  here?: 'one' | 'all'
}): ReactElement {
  return (
    <nav className="loomswitch" aria-label="Runs shown">
      {run === null ? (
        <span aria-disabled="true">One run</span>
      ) : (
        <Link to={`/runs/${run}`} aria-current={here === 'one' ? 'page' : undefined}>
          One run
        </Link>
      )}
      <Link to={`/loom/${encodeURIComponent(workflow)}`} aria-current={here === 'all' ? 'page' : undefined}>
        All runs
      </Link>
    </nav>
  )
}
