// The sheet of the block that was opened: the talk of an agent, the step of any other block. Loaded when the first one is opened.

import { useEffect, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { uiStore } from '../../state/ui'
import { FieldScopeContext } from '../../forms/fields/scope'
import { useFieldScopeOf, type Mode } from '../inspector/useScope'
import { StepSheet } from './StepSheet'
import { close } from './Frame'
import { forgetSteps } from './step'

export default function Sheet({ mode }: { mode: Mode }): ReactElement | null {
  const id = useStore(uiStore, (state) => state.sheet)
  const scope = useFieldScopeOf(mode, id)
  const block = id === null ? undefined : scope.doc.blocks[id]
  useEffect(() => forgetSteps, [])
  useEffect(() => {
    if (id !== null && !block) close()
  }, [id, block])
  if (id === null || !block) return null
  return (
    <FieldScopeContext value={scope}>
      <StepSheet key={id} id={id} mode={mode} />
    </FieldScopeContext>
  )
}
