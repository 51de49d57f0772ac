// What the inspector shows: which document, which run beside it, and whether it can be changed.

import { useEffect, useMemo } from 'react'
import { api } from '../../net/api'
import type { Document } from '../../net/types'
import { docStore, specsStore } from '../../state/doc'
import { runStore } from '../../state/live'
import { createStore, shallow, useSelect } from '../../state/store'
import { uiStore } from '../../state/ui'
import { placedFindings, type FieldScope } from '../fields/scope'

export type Mode = 'edit' | 'run'

/** Environment names, asked for once. null: not known (yet). */
const envStore = createStore<{ names: readonly string[] | null; asked: boolean }>({ names: null, asked: false })

export function useEnv(): readonly string[] | null {
  useEffect(() => {
    if (envStore.get().asked) return
    envStore.set({ asked: true })
    api.env().then(
      (env) => envStore.set({ names: env.map((each) => each.name) }),
      () => envStore.set({ asked: false }),
    )
  }, [])
  return useSelect(envStore, (state) => state.names)
}

export function useShownDoc(mode: Mode): Document {
  const edited = useSelect(docStore, (state) => state.doc)
  const ran = useSelect(runStore, (state) => state.doc)
  return mode === 'run' ? (ran ?? edited) : edited
}

/** The scope of the fields of `block`, or of the workflow's own (null). */
export function useFieldScopeOf(mode: Mode, block: string | null): FieldScope {
  const doc = useShownDoc(mode)
  const specs = useSelect(specsStore, (state) => state.specs)
  const { diagnostics, locked } = useSelect(
    docStore,
    (state) => ({ diagnostics: state.diagnostics, locked: state.readonly }),
    shallow,
  )
  const { view, ranDoc, meta } = useSelect(
    runStore,
    (state) => ({ view: state.view, ranDoc: state.doc, meta: state.meta }),
    shallow,
  )
  const iter = useSelect(uiStore, (state) => state.iter)
  const env = useEnv()
  const run = useMemo(
    () => (view.seq > 0 && ranDoc ? { view, doc: ranDoc, iter, input: meta?.input } : null),
    [view, ranDoc, iter, meta],
  )
  const findings = useMemo(() => (mode === 'run' ? [] : placedFindings(diagnostics)), [mode, diagnostics])
  return useMemo(
    () => ({ doc, block, specs, readonly: mode === 'run' || locked, diagnostics: findings, run, env }),
    [doc, block, specs, mode, locked, findings, run, env],
  )
}
