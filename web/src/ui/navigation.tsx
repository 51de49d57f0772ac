// The address bar: where the interface is, and links that change it without loading the page again.

import { useSyncExternalStore, type AnchorHTMLAttributes, type ReactElement } from 'react'

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

function subscribe(listener: () => void): () => void {
  addEventListener('popstate', listener)
  addEventListener('weft:navigate', listener)
  return () => {
    removeEventListener('popstate', listener)
    removeEventListener('weft:navigate', listener)
  }
}
