// Versions: the draft is what autosave writes; a version is saved on purpose and never changes again.

import { lazy, Suspense, useState, type ReactElement } from 'react'
import { api, ApiError } from '../../net/api'
import type { Diagnostic, SavedWorkflow } from '../../net/types'
import { toastUndo } from '../../canvas/edit'
import { keyText } from '../../keys'
import { dispatch, docStore, flush } from '../../state/doc'
import { useSelect } from '../../state/store'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { MenuButton, type MenuEntry } from '../../ui/Menu'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { chooseFile, exportJson } from './files'

// Fetched when versions are compared.
const DiffDialog = lazy(() => import('./DiffDialog'))

const LISTED = 8

export function VersionMenu(): ReactElement {
  const base = useSelect(docStore, (s) => s.baseVersion)
  const edits = useSelect(docStore, (s) => (s.baseRev === null ? 0 : Math.max(0, s.rev - s.baseRev)))
  const name = useSelect(docStore, (s) => s.baseName ?? s.doc.name ?? '')
  const comparing = useSelect(uiStore, (s) => s.overlay === 'diff')
  const stored = useData(async () => (base === null ? null : await api.versions(name, LISTED)), [name, base])
  const versions = stored.value?.versions.map((each) => each.version) ?? (base === null ? [] : Array.from({ length: Math.min(base, LISTED) }, (_, i) => base - i))
  const active = stored.value?.active
  const entries: MenuEntry[] = [
    { label: 'Save a version', keys: keyText('save'), onSelect: () => uiStore.set({ overlay: 'version' }) },
    { label: 'Compare versions', why: base === null ? 'No version is saved yet' : null, onSelect: () => uiStore.set({ overlay: 'diff' }) },
    ...(versions.length ? ['line' as const] : []),
    ...versions.map((version): MenuEntry => ({ label: `Take over version ${version}${version === active ? ' (active)' : ''}`, onSelect: () => void takeOver(name, version) })),
    'line',
    { label: 'Import a file', onSelect: chooseFile },
    { label: 'Export as JSON', icon: 'download', onSelect: () => exportJson() },
  ]
  return (
    <>
      <MenuButton kind="bare" className="bar__version" label="Versions" entries={entries} data-testid="versions">{base === null ? 'draft' : `draft · v${base}${edits ? `+${edits}` : ''}`}</MenuButton>
      <SaveVersion />
      {comparing ? <Suspense fallback={null}><DiffDialog /></Suspense> : null}
    </>
  )
}

async function takeOver(name: string, version: number): Promise<void> {
  try {
    const { id } = docStore.get()
    const { document } = await api.workflow(name, version)
    if (docStore.get().id !== id) return
    if (dispatch({ type: 'replaceDoc', doc: document })) toastUndo(`The draft is version ${version} now.`, 'ok')
    else toast(`The draft is version ${version} already.`)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'err')
  }
}

function savedText({ name, version, created, activated, replaced }: SavedWorkflow): string {
  if (created) return `Saved as version ${version} of ${name}.`
  if (!activated) return `This is version ${version} of ${name}, which is active already.`
  return replaced === null ? `Version ${version} of ${name} is active again.` : `Version ${version} of ${name} is active again instead of version ${replaced}.`
}

function SaveVersion(): ReactElement | null {
  const open = useSelect(uiStore, (s) => s.overlay === 'version')
  const name = useSelect(docStore, (s) => s.doc.name ?? '')
  const [typed, setTyped] = useState<string | null>(null)
  const [problems, setProblems] = useState<{ text: string; list: readonly Diagnostic[] } | null>(null)
  const [busy, setBusy] = useState(false)
  const close = (): void => {
    setProblems(null)
    setTyped(null)
    uiStore.set({ overlay: null })
  }
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      await flush()
      const { id, rev } = docStore.get()
      if (id === null) return
      const saved = await api.saveDraftVersion(id, rev, typed?.trim() || name)
      if (docStore.get().id === id) docStore.set({ baseVersion: saved.version, baseName: saved.name, baseRev: saved.rev ?? rev })
      toast(savedText(saved), 'ok')
      close()
    } catch (error) {
      const list = error instanceof ApiError ? error.diagnostics.filter((found) => found.severity === 'error') : []
      setProblems({ text: error instanceof Error ? error.message : String(error), list })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title="Save a version" open={open} onClose={close}
      foot={<><Button onClick={close}>Not now</Button><Button kind="primary" data-testid="save-version" why={busy ? 'It is being saved.' : null} onClick={() => void save()}>Save</Button></>}
    >
      <form
        className="dialogform" onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <label>
          <span className="label">workflow</span>
          <input type="text" value={typed ?? name} onChange={(event) => setTyped(event.target.value)} autoFocus spellCheck={false} />
        </label>
        <p className="quiet">A version never changes again. Webhooks, schedules and calls by name use the version saved last, also when you save an older one again; the draft stays yours.</p>
        {problems ? (
          <div role="alert" className="dialogform__refused">
            <p>{problems.text}</p>
            <ul>{problems.list.slice(0, 8).map((found, i) => <li key={i}>{found.message}</li>)}</ul>
          </div>
        ) : null}
      </form>
    </Dialog>
  )
}
