// What two futures of a run came to, beside each other.

import type { ReactElement } from 'react'

export function FuturesTable({
  rows,
  now = 'Now',
}: {
  rows: readonly (readonly [string, string, string])[]
  now?: string
}): ReactElement {
  return (
    <table className="futures__facts">
      <thead>
        <tr>
          <td />
          <th scope="col" data-when="before">
            Before
          </th>
          <th scope="col" data-when="now">
            {now}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, was, is]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td title={was}>{was}</td>
            <td title={is} data-changed={was !== is || undefined}>
              {is}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
