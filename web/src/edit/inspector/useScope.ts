// What the inspector shows: which document, which run beside it, and whether it can be changed.

import { useEffect, useMemo } from 'react'
import { createStore } from 'zustand/vanilla'
import { useShallow } from 'zustand/react/shallow'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import type { Document } from '../../api/types'
import { calmStore } from '../../state/calm'
import { docStore, specsStore } from '../../state/doc'
import { runStore } from '../../state/live'
import { loadMe, mayNot, meStore } from '../../state/me'
import { uiStore } from '../../state/ui'
import { placedFindings, type FieldScope } from '../../forms/fields/scope'

export type Mode = 'edit' | 'run'

/** Environment names, asked for once, by those who may edit. null: not known (yet). */
const envStore = createStore<{ names: readonly string[] | null; asked: boolean }>(() => ({ names: null, asked: false }))

export function useEnv(): readonly string[] | null {
  const may = useStore(meStore, (state) => state.me !== null && mayNot('editor', state.me) === null)
  useEffect(() => {
    if (meStore.getState().me === null) void loadMe()
  }, [])
  useEffect(() => {
    if (!may || envStore.getState().asked) return
    envStore.setState({ asked: true })
    api.env().then(
      (env) => envStore.setState({ names: env.map((each) => each.name) }),
      () => envStore.setState({ asked: false }),
    )
  }, [may])
  return useStore(envStore, (state) => state.names)
}

export function useShownDoc(mode: Mode): Document {
  const edited = useStore(docStore, (state) => state.doc)
  const ran = useStore(runStore, (state) => state.doc)
  return mode === 'run' ? (ran ?? edited) : edited
}

/** The scope of the fields of `block`, or of the workflow's own (null). */
export function useFieldScopeOf(mode: Mode, block: string | null): FieldScope {
  const doc = useShownDoc(mode)
  const specs = useStore(specsStore, (state) => state.specs)
  const { diagnostics, locked } = useStore(
    docStore,
    useShallow((state) => ({ diagnostics: state.diagnostics, locked: state.readonly })),
  )
  const { view, ranDoc, meta } = useStore(
    runStore,
    useShallow((state) => ({ view: state.view, ranDoc: state.doc, meta: state.meta })),
  )
  const iter = useStore(uiStore, (state) => state.iter)
  const env = useEnv()
  const calm = useStore(calmStore, (state) => mode === 'edit' && block !== null && state.fresh.has(block))
  const run = useMemo(
    () => (view.seq > 0 && ranDoc ? { view, doc: ranDoc, iter, input: meta?.input } : null),
    [view, ranDoc, iter, meta],
  )
  const findings = useMemo(() => (mode === 'run' ? [] : placedFindings(diagnostics)), [mode, diagnostics])
  return useMemo(
    () => ({ doc, block, specs, readonly: mode === 'run' || locked, calm, diagnostics: findings, run, env }),
    [doc, block, specs, mode, locked, calm, findings, run, env],
  )
}
