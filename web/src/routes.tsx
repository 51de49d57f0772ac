// The addresses of the interface and their pages. A page is loaded when it is first needed; its module exports it as default
// and gets what the address holds as props.

import { lazy, Suspense, type ComponentType, type ReactElement } from 'react'
import { Link, useLocation } from './ui/navigation'

type PageProps = { id: string }

interface PageRoute {
  pattern: RegExp
  page: ComponentType<PageProps>
}

const page = (load: () => Promise<{ default: ComponentType<PageProps> }>): ComponentType<PageProps> => lazy(load)

const ROUTES: readonly PageRoute[] = [
  { pattern: /^\/$/, page: page(() => import('./pages/Home')) },
  { pattern: /^\/w\/([^/]+)$/, page: page(() => import('./pages/Editor')) },
  { pattern: /^\/runs$/, page: page(() => import('./pages/Runs')) },
  { pattern: /^\/runs\/([^/]+)$/, page: page(() => import('./pages/Run')) },
  { pattern: /^\/loom\/([^/]+)$/, page: page(() => import('./pages/Loom')) },
  { pattern: /^\/approvals$/, page: page(() => import('./pages/Approvals')) },
  { pattern: /^\/knowledge(?:\/([^/]+))?$/, page: page(() => import('./pages/Knowledge')) },
  { pattern: /^\/usage$/, page: page(() => import('./pages/Usage')) },
  { pattern: /^\/settings$/, page: page(() => import('./pages/Settings')) },
]

export function Routes(): ReactElement {
  const { path } = useLocation()
  for (const { pattern, page: Page } of ROUTES) {
    const match = pattern.exec(path)
    if (!match) continue
    const id = decodeURIComponent(match[1] ?? '')
    return (
      <Suspense fallback={null}>
        <Page key={match[1] === undefined ? path : `${pattern.source}${id}`} id={id} />
      </Suspense>
    )
  }
  return (
    <main className="page">
      <h1>Page not found</h1>
      <p>
        <Link to="/">Go to workflows</Link>
      </p>
    </main>
  )
}
