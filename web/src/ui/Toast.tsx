// Short messages at the bottom right, for what belongs to no block: "Copied", "Saved as version 3". Never for a block's error.

import { useEffect, type ReactElement } from 'react'
import { createStore } from 'zustand/vanilla'
import { useStore } from 'zustand'
import { announce } from '../a11y'
import { Button } from './Button'

export interface Toast {
  id: number
  text: string
  tone: 'plain' | 'ok' | 'wait' | 'err'
  action?: { label: string; onSelect: () => void }
}

const STAYS_MS = 5000
const store = createStore<{ toasts: readonly Toast[] }>(() => ({ toasts: [] }))
let next = 1

/** Gives back what takes it away again. */
export function toast(text: string, tone: Toast['tone'] = 'plain', action?: Toast['action']): () => void {
  announce(text)
  const id = next++
  store.setState(({ toasts }) => ({ toasts: [...toasts.slice(-3), { id, text, tone, ...(action ? { action } : {}) }] }))
  return () => dismiss(id)
}

function dismiss(id: number): void {
  store.setState(({ toasts }) => ({ toasts: toasts.filter((other) => other.id !== id) }))
}

export function Toasts(): ReactElement {
  const toasts = useStore(store, (s) => s.toasts)
  return (
    <div className="toasts">
      {toasts.map((each) => (
        <One key={each.id} toast={each} />
      ))}
    </div>
  )
}

function One({ toast }: { toast: Toast }): ReactElement {
  const close = (): void => dismiss(toast.id)
  useEffect(() => {
    const timer = setTimeout(close, toast.action ? STAYS_MS * 2 : STAYS_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="toast" data-tone={toast.tone}>
      <span>{toast.text}</span>
      {toast.action ? <Button onClick={() => (close(), toast.action!.onSelect())}>{toast.action.label}</Button> : null}
      <Button kind="bare" icon="close" iconOnly onClick={close}>
        Dismiss
      </Button>
    </div>
  )
}
