// The bar above every page: where one is, the ways to the other pages, and at the right what belongs to the page.

import type { ReactElement, ReactNode } from 'react'
import { Link, useLocation } from '../routes'

const TABS = [
  { to: '/', label: 'Workflows' },
  { to: '/runs', label: 'Runs' },
  { to: '/approvals', label: 'Approvals' },
  { to: '/settings', label: 'Settings' },
] as const

/** `approvals`: how many are waiting. `left` stands behind the brand, `right` at the right end. */
export function TopBar({ left, right, approvals }: { left?: ReactNode; right?: ReactNode; approvals?: number }): ReactElement {
  const { path } = useLocation()
  return (
    <header className="bar">
      <Link to="/" className="bar__brand">weft</Link>
      {left}
      <nav className="bar__tabs" aria-label="Pages">
        {TABS.map(({ to, label }) => (
          <Link key={to} to={to} aria-current={path === to || (to !== '/' && path.startsWith(`${to}/`)) ? 'page' : undefined}>
            {label}{to === '/approvals' && approvals ? ` ${approvals}` : ''}
          </Link>
        ))}
      </nav>
      <div className="bar__right">{right}</div>
    </header>
  )
}
