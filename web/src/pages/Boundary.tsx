// What is shown when a component fails: a message instead of a blank page, and actions that lose nothing. `part` is for one panel
// of a page: the rest of the page still works, and the panel tries again when `resetOn` changes.

import { Component, type ErrorInfo, type ReactElement, type ReactNode } from 'react'
import { docStore, storedDocument } from '../state/doc'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { toast } from '../ui/Toast'
import './pages.css'

interface BoundaryProps {
  part?: string
  resetOn?: unknown
  children: ReactNode
}

export class Boundary extends Component<BoundaryProps, { error: Error | null }> {
  override state = { error: null as Error | null }

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }

  override componentDidMount(): void {
    addEventListener('popstate', this.again)
    addEventListener('weft:navigate', this.again)
  }

  override componentWillUnmount(): void {
    removeEventListener('popstate', this.again)
    removeEventListener('weft:navigate', this.again)
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (this.state.error && before.resetOn !== this.props.resetOn) this.again()
  }

  override componentDidCatch(error: Error, where: ErrorInfo): void {
    // For bug reports: which component it was.
    console.error(error, where.componentStack)
  }

  again = (): void => {
    if (this.state.error) this.setState({ error: null })
  }

  override render(): ReactNode {
    const { error } = this.state
    if (!error) return this.props.children
    return this.props.part ? (
      <BrokenPart part={this.props.part} error={error} onAgain={this.again} />
    ) : (
      <BrokenPage error={error} onAgain={this.again} />
    )
  }
}

function BrokenPart({ part, error, onAgain }: { part: string; error: Error; onAgain: () => void }): ReactElement {
  return (
    <EmptyState icon="warning" title={`${part} cannot be shown`}>
      <p className="mono" role="alert">
        {error.message}
      </p>
      <Button icon="redo" onClick={onAgain}>
        Try again
      </Button>
    </EmptyState>
  )
}

function BrokenPage({ error, onAgain }: { error: Error; onAgain: () => void }): ReactElement {
  const open = docStore.getState().id !== null
  return (
    <main className="page" data-testid="broken-page">
      <EmptyState icon="warning" title="This page stopped working">
        <p className="mono" role="alert">
          {error.message}
        </p>
        <p className="quiet">
          {open
            ? 'Your changes are saved on the server, or in this browser until the server is available.'
            : 'Runs continue without this page.'}
        </p>
        <div className="broken__ways">
          <Button kind="primary" icon="redo" onClick={() => location.reload()}>
            Reload
          </Button>
          <Button onClick={onAgain}>Try again</Button>
          {open ? (
            <Button icon="copy" onClick={() => void copyDraft()}>
              Copy draft as JSON
            </Button>
          ) : null}
          <a className="button" href="/">
            Go to workflows
          </a>
        </div>
      </EmptyState>
    </main>
  )
}

async function copyDraft(): Promise<void> {
  const text = JSON.stringify(storedDocument(), null, 2)
  try {
    await navigator.clipboard.writeText(text)
    toast('Copied draft JSON', 'ok')
  } catch {
    // No clipboard on pages without TLS: a file will do.
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
    link.download = 'draft.json'
    link.click()
  }
}
