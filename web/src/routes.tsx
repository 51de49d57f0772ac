// The addresses of the interface and their pages. A page is loaded when it is first needed; its module exports it as default
// and gets what the address holds as props.

import {
  lazy,
  Suspense,
  useSyncExternalStore,
  type AnchorHTMLAttributes,
  type ComponentType,
  type ReactElement,
} from 'react'

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
  { pattern: /^\/approvals$/, page: page(() => import('./pages/Approvals')) },
  { pattern: /^\/settings$/, page: page(() => import('./pages/Settings')) },
]

/** Path and query of the address bar. */
export function useLocation(): { path: string; query: URLSearchParams } {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search)
  const url = new URL(href, location.origin)
  return { path: url.pathname, query: url.searchParams }
}

/** Go to an address of the interface. `replace`: Back does not come here again. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (to === location.pathname + location.search) return
  history[options.replace ? 'replaceState' : 'pushState'](null, '', to)
  dispatchEvent(new Event('weft:navigate'))
}

/** Change the query and nothing else; null removes a name. */
export function setQuery(change: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(change)) {
    if (value === null) query.delete(name)
    else query.set(name, value)
  }
  const text = query.toString()
  navigate(location.pathname + (text ? `?${text}` : ''), { replace: true })
}

/** A link that stays in the page; with a modifier key the browser does as usual. */
export function Link({
  to,
  onClick,
  ...rest
}: { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>): ReactElement {
  return (
    <a
      href={to}
      {...rest}
      onClick={(event) => {
        onClick?.(event)
        if (
          event.defaultPrevented ||
          event.button !== 0 ||
          event.metaKey ||
          event.ctrlKey ||
          event.shiftKey ||
          event.altKey
        )
          return
        event.preventDefault()
        navigate(to)
      }}
    />
  )
}

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

function subscribe(listener: () => void): () => void {
  addEventListener('popstate', listener)
  addEventListener('weft:navigate', listener)
  return () => {
    removeEventListener('popstate', listener)
    removeEventListener('weft:navigate', listener)
  }
}
