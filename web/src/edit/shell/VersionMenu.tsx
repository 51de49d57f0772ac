// Versions: the draft is what autosave writes; a version is published on purpose and does not change.

import { lazy, Suspense, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { toastUndo } from '../../actions/undo'
import { keyText } from '../../keys'
import { dispatch, docStore } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Icon } from '../../ui/icons'
import { MenuButton, type MenuEntry } from '../../ui/Menu'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { chooseFile, exportJson } from '../../actions/files'

// Fetched when they are opened.
const DiffDialog = lazy(() => import('./DiffDialog'))
const EvaluateDialog = lazy(() => import('../evaluate/EvaluateDialog'))
const PublishDialog = lazy(() => import('./PublishDialog'))

const LISTED = 8

export function VersionMenu(): ReactElement {
  const base = useStore(docStore, (s) => s.baseVersion)
  const edits = useStore(docStore, (s) => (s.baseRev === null ? 0 : Math.max(0, s.rev - s.baseRev)))
  const name = useStore(docStore, (s) => s.baseName ?? s.doc.name ?? '')
  const comparing = useStore(uiStore, (s) => s.overlay === 'diff')
  const publishing = useStore(uiStore, (s) => s.overlay === 'version')
  const evaluating = useStore(uiStore, (s) => s.overlay === 'evaluate')
  const stored = useData(async () => (base === null ? null : await api.versions(name, LISTED)), [name, base])
  const versions =
    stored.value?.versions.map((each) => each.version) ??
    (base === null ? [] : Array.from({ length: Math.min(base, LISTED) }, (_, i) => base - i))
  const active = stored.value?.active
  const why = useReadOnly()
  const entries: MenuEntry[] = [
    {
      label: 'Publish version',
      why,
      icon: 'upload',
      keys: keyText('save'),
      onSelect: () => uiStore.setState({ overlay: 'version' }),
    },
    {
      label: 'Compare versions',
      icon: 'set',
      why: base === null ? 'Not published yet' : null,
      onSelect: () => uiStore.setState({ overlay: 'diff' }),
    },
    ...(versions.length ? ['line' as const] : []),
    ...versions.map(
      (version): MenuEntry => ({
        label: `Put version ${version}${version === active ? ' (live)' : ''} into the draft`,
        icon: 'undo',
        why,
        onSelect: () => void restore(name, version, active),
      }),
    ),
    'line',
    { label: 'Import file', icon: 'upload', why, onSelect: chooseFile },
    { label: 'Export as JSON', icon: 'download', onSelect: () => exportJson() },
  ]
  return (
    <>
      <MenuButton kind="bare" className="bar__version" label="Versions" entries={entries} data-testid="versions">
        {base === null ? 'Draft' : `Draft · v${base}${edits ? ', edited' : ''}`}
        <Icon name="down" size={12} />
      </MenuButton>
      {publishing ? (
        <Suspense fallback={null}>
          <PublishDialog />
        </Suspense>
      ) : null}
      {evaluating ? (
        <Suspense fallback={null}>
          <EvaluateDialog />
        </Suspense>
      ) : null}
      {comparing ? (
        <Suspense fallback={null}>
          <DiffDialog />
        </Suspense>
      ) : null}
    </>
  )
}

/** `live`: the version that runs use meanwhile. */
async function restore(name: string, version: number, live: number | undefined): Promise<void> {
  try {
    const { id } = docStore.getState()
    const { document } = await api.workflow(name, version)
    if (docStore.getState().id !== id) return
    const stays = live === undefined || live === version ? '' : ` Version ${live} stays live until you publish.`
    if (dispatch({ type: 'replaceDoc', doc: document }))
      toastUndo(`The draft is version ${version} again.${stays}`, 'ok')
    else toast(`The draft is identical to version ${version}.`)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'err')
  }
}
