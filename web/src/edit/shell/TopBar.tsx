// The bar above every page: where one is, the ways to the other pages, and at the right what belongs to the page. It also holds
// what every page has: the command palette and the sheet of shortcuts, with their keys.

import { lazy, Suspense, useEffect, useState, type ComponentType, type ReactElement, type ReactNode } from 'react'
import { useStore } from 'zustand'
import { keyOfEvent, keyText } from '../../keys'
import { Icon } from '../../ui/icons'
import { Mark } from '../../ui/Mark'
import { Link, useLocation } from '../../ui/navigation'
import { loadServer } from '../../state/server'
import { uiStore } from '../../state/ui'
import { useServerReadOnly } from '../../ui/rights'
import { rerunStore } from '../../actions/start'
import { useApprovals } from './waiting'
import './shell.css'

// Fetched when they are opened.
const ShortcutSheet = lazy(() => import('./ShortcutSheet'))
const RerunDialog = lazy(() => import('./RerunDialog'))

// Fetched once the bar is there: what is typed after its keys is not lost.
let Palette: ComponentType | null = null

export interface BarTab {
  to: string
  label: string
}

const TABS: readonly BarTab[] = [
  { to: '/', label: 'Workflows' },
  { to: '/runs', label: 'Runs' },
  { to: '/approvals', label: 'Approvals' },
  { to: '/knowledge', label: 'Knowledge' },
  { to: '/usage', label: 'Usage' },
  { to: '/settings', label: 'Settings' },
]

export interface TopBarProps {
  /** After the brand. */
  left?: ReactNode
  /** At the right end. */
  right?: ReactNode
  /** The number of open approvals; without it, the bar loads it. */
  approvals?: number
  tabs?: readonly BarTab[]
}

export default function TopBar({ left, right, approvals, tabs = TABS }: TopBarProps): ReactElement {
  const { path } = useLocation()
  const counted = useApprovals()
  const waiting = approvals ?? counted
  const Loaded = usePalette()
  const palette = useStore(uiStore, (s) => s.overlay === 'palette')
  const sheet = useStore(uiStore, (s) => s.overlay === 'shortcuts')
  const rerun = useStore(rerunStore, (s) => s.from !== null)
  const readOnly = useServerReadOnly()
  useOverlayKeys()
  useEffect(() => void loadServer(), [])
  return (
    <>
      <header className="bar">
        <Link to="/" className="bar__brand" aria-label="weft">
          <Mark />
          {left ? null : <span className="bar__word">weft</span>}
        </Link>
        {left}
        <nav className="bar__tabs" aria-label="Pages">
          {tabs.map(({ to, label }) => {
            const here = to.split('?')[0]!
            const isCurrent = path === here || (here !== '/' && path.startsWith(`${here}/`))
            const count = here === '/approvals' && waiting ? waiting : null
            return (
              <Link key={to} to={to} aria-current={isCurrent ? 'page' : undefined}>
                {label}
                {count === null ? null : (
                  <span className="bar__count">
                    {' '}
                    {count}
                    <span className="visually-hidden"> waiting</span>
                  </span>
                )}
              </Link>
            )
          })}
        </nav>
        <div className="bar__right">
          {left ? null : <FindAnything />}
          {right}
        </div>
        {palette && Loaded ? <Loaded /> : null}
        <Suspense fallback={null}>
          {sheet ? <ShortcutSheet /> : null}
          {rerun ? <RerunDialog /> : null}
        </Suspense>
      </header>
      {readOnly ? (
        <div className="banner" data-tone="wait" role="status" data-testid="read-only">
          <p>{readOnly} You can look at everything; nothing can be changed or run here.</p>
        </div>
      ) : null}
    </>
  )
}

/** The command palette for the pointer, on pages whose bar has room. */
function FindAnything(): ReactElement {
  return (
    <button type="button" className="bar__find" onClick={() => uiStore.setState({ overlay: 'palette' })}>
      <Icon name="search" />
      Find or do anything
      <kbd>{keyText('commands')}</kbd>
    </button>
  )
}

function usePalette(): ComponentType | null {
  const [, setLoaded] = useState(Palette !== null)
  useEffect(() => {
    void import('./CommandPalette').then((loaded) => {
      Palette = loaded.default
      setLoaded(true)
    })
  }, [])
  return Palette
}

function useOverlayKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented) return
      const { overlay } = uiStore.getState()
      const key = keyOfEvent(event, ['app'])
      if (key === 'commands') uiStore.setState({ overlay: overlay === 'palette' ? null : 'palette' })
      else if (key === 'shortcuts' && overlay === null) uiStore.setState({ overlay: 'shortcuts' })
      else return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

export { TopBar }
