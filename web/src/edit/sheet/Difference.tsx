// One output beside another one: lines that are gone in flax, new ones in plum.

import { useMemo, useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { difference } from '../../run/difference'
import type { Other } from './takes'

export function Difference({
  value,
  title,
  others,
}: {
  value: Json | undefined
  title: string
  others: readonly Other[]
}): ReactElement {
  const [chosen, setChosen] = useState<string | null>(null)
  const other = others.find((each) => each.id === chosen) ?? others[0]
  const { lines, cut } = useMemo(() => difference(other?.value, value), [other?.value, value])
  if (!other) return <p className="wsheet__empty">There is no other attempt, iteration or run to compare with.</p>
  const changed = lines.some((line) => line.mark !== '=')
  return (
    <>
      <label className="difference__with">
        Compared with
        <select className="field" value={other.id} onChange={(event) => setChosen(event.target.value)}>
          {others.map((each) => (
            <option key={each.id} value={each.id}>
              {each.title}
            </option>
          ))}
        </select>
      </label>
      <div className="difference" data-testid="difference">
        <p className="difference__head">
          <span data-mark="-">{other.title.toLowerCase()}</span>
          <span data-mark="+">{/^\d+$/.test(title) ? `attempt ${title}` : title.toLowerCase()}</span>
        </p>
        <div className="difference__lines" tabIndex={0} role="group" aria-label="Difference">
          {changed ? null : <p className="difference__line">No difference.</p>}
          {(changed ? lines : []).map((line) => (
            <p key={line.id} className="difference__line" data-mark={line.mark}>
              <span className="difference__mark">{line.mark === '=' ? ' ' : line.mark}</span>
              <span className="difference__key" style={{ paddingLeft: line.depth * 14 }}>
                {line.key}
              </span>
              <span className="difference__text">{line.text}</span>
            </p>
          ))}
          {cut ? <p className="difference__line">and more</p> : null}
        </div>
      </div>
    </>
  )
}
