// The start: styles, fonts, theme, router. `window.__app` lets browser tests look at the stores.

import './ui/fonts'
import './ui/tokens.css'
import './ui/base.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Boundary } from './pages/Boundary'
import { SignIn } from './pages/SignIn'
import { Routes } from './routes'
import { docStore, flush } from './state/doc'
import { writePending } from './state/history'
import { runStore } from './state/live'
import { netStore } from './state/net'
import { applyTheme, uiStore } from './state/ui'
import { Toasts } from './ui/Toast'

applyTheme(document.documentElement)
// What was typed in the last second is sent now; if that fails, the copy in this browser is offered at the next visit.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) return
  if (docStore.getState().saving === 'dirty') void flush()
  void writePending()
})
Object.defineProperty(window, '__app', { value: { doc: docStore, run: runStore, net: netStore, ui: uiStore } })

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Boundary>
      <Routes />
    </Boundary>
    <Toasts />
    <SignIn />
  </StrictMode>,
)
