// Three columns; in a narrower window the outer ones share one, as tabs, and on a phone all three do.

import { useState, type ReactElement } from 'react'
import { useWidthBelow } from '../../ui/useWidthBelow'

/** `titles` by column, from left to right: the middle one is what the sheet is for. */
export function Columns<C extends string>({
  titles,
  className,
  children,
}: {
  titles: Readonly<Record<C, string>>
  className?: string
  children: (column: C) => ReactElement
}): ReactElement {
  const middle = useWidthBelow(1180)
  const phone = useWidthBelow(760)
  const all = Object.keys(titles) as C[]
  const [first, main] = [all[0]!, all[1]!]
  const [tab, setTab] = useState<C>(main)
  const tabs = phone ? all : all.filter((each) => each !== main)
  const now = phone || tab !== main ? tab : first
  const shown = phone ? [now] : middle ? [now, main] : all
  return (
    <>
      {middle ? (
        <div className="wsheet__tabs" role="group" aria-label="Columns">
          {tabs.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={now === each}
              data-testid={`column-${each}`}
              onClick={() => setTab(each)}
            >
              {titles[each]}
            </button>
          ))}
        </div>
      ) : null}
      <div className={['wsheet__columns', className].filter(Boolean).join(' ')} data-count={shown.length}>
        {shown.map((column) => (
          <div key={column} className="wsheet__column" data-column={column}>
            {children(column)}
          </div>
        ))}
      </div>
    </>
  )
}
