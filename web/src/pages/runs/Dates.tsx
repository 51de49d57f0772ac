// The time of the runs as two fields, for the keyboard and for exact moments.

import type { ReactElement } from 'react'
import { serverNow } from '../../net/clock'
import { Button } from '../../ui/Button'
import { setQuery, useLocation } from '../../ui/navigation'
import { fieldOf, sinceOf } from './filter'

export function Dates({ onClose }: { onClose: () => void }): ReactElement {
  const { query } = useLocation()
  const field = (param: 'since' | 'until', label: string): ReactElement => {
    const at = sinceOf(query.get(param), serverNow())
    return (
      <label>
        {label}
        <input
          type="datetime-local"
          value={at === undefined ? '' : fieldOf(at)}
          onChange={(event) => {
            const chosen = new Date(event.target.value).getTime()
            setQuery({ [param]: Number.isNaN(chosen) ? null : String(chosen) })
          }}
        />
      </label>
    )
  }
  return (
    <div className="rundates" role="group" aria-label="Dates">
      {field('since', 'From')}
      {field('until', 'To')}
      <Button
        kind="bare"
        icon="close"
        iconOnly
        onClick={() => {
          setQuery({ since: null, until: null })
          onClose()
        }}
      >
        Any time
      </Button>
    </div>
  )
}
