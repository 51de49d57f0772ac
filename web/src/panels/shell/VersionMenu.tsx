// Versions: the draft is what autosave writes; a version is published on purpose and does not change.

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
import { Icon } from '../../ui/icons'
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
    { label: 'Publish version', icon: 'upload', keys: keyText('save'), onSelect: () => uiStore.set({ overlay: 'version' }) },
    { label: 'Compare versions', icon: 'set', why: base === null ? 'Not published yet' : null, onSelect: () => uiStore.set({ overlay: 'diff' }) },
    ...(versions.length ? ['line' as const] : []),
    ...versions.map((version): MenuEntry => ({ label: `Restore version ${version}${version === active ? ' (active)' : ''}`, icon: 'undo', onSelect: () => void restore(name, version) })),
    'line',
    { label: 'Import file', icon: 'upload', onSelect: chooseFile },
    { label: 'Export as JSON', icon: 'download', onSelect: () => exportJson() },
  ]
  return (
    <>
      <MenuButton kind="bare" className="bar__version" label="Versions" entries={entries} data-testid="versions">{base === null ? 'Draft' : `Draft · v${base}${edits ? `+${edits}` : ''}`}<Icon name="down" size={12} /></MenuButton>
      <SaveVersion />
      {comparing ? <Suspense fallback={null}><DiffDialog /></Suspense> : null}
    </>
  )
}

async function restore(name: string, version: number): Promise<void> {
  try {
    const { id } = docStore.get()
    const { document } = await api.workflow(name, version)
    if (docStore.get().id !== id) return
    if (dispatch({ type: 'replaceDoc', doc: document })) toastUndo(`Restored version ${version}.`, 'ok')
    else toast(`The draft is identical to version ${version}.`)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'err')
  }
}

function savedText({ name, version, created, activated, replaced }: SavedWorkflow): string {
  if (created) return `Published version ${version} of ${name}.`
  if (!activated) return `No changes: version ${version} of ${name} is active.`
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
      title="Publish version" open={open} onClose={close}
      foot={<><Button onClick={close}>Cancel</Button><Button kind="primary" data-testid="save-version" why={busy ? 'Publishing' : null} onClick={() => void save()}>Publish</Button></>}
    >
      <form
        className="dialogform" onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <label>
          <span className="label">Workflow name</span>
          <input type="text" value={typed ?? name} onChange={(event) => setTyped(event.target.value)} autoFocus spellCheck={false} />
        </label>
        <p className="quiet">A published version cannot be changed. Webhooks, schedules and API calls use it from now on. You can keep editing the draft.</p>
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
