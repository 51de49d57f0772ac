// The sheet of the block that was opened: the talk of an agent, the step of any other block. Loaded when the first one is opened.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { uiStore } from '../../state/ui'
import { FieldScopeContext } from '../../forms/fields/scope'
import { useFieldScopeOf, type Mode } from '../inspector/useScope'
import { AgentSheet } from './AgentSheet'
import { StepSheet } from './StepSheet'
import { close } from './Frame'
import { forgetSteps } from './step'

/** The lanes of the Tape give their room to the sheet, and get it back after it; its strip stays. */
function foldTape(): (() => void) | undefined {
  if (uiStore.getState().drawer !== 'tape') return undefined
  uiStore.setState({ drawer: null })
  return () => {
    if (uiStore.getState().drawer === null) uiStore.setState({ drawer: 'tape' })
  }
}

export default function Sheet({ mode }: { mode: Mode }): ReactElement | null {
  const id = useStore(uiStore, (state) => state.sheet)
  const scope = useFieldScopeOf(mode, id)
  const block = id === null ? undefined : scope.doc.blocks[id]
  const [asStep, setAsStep] = useState(false)
  useEffect(() => forgetSteps, [])
  useEffect(() => {
    if (id !== null && !block) close()
  }, [id, block])
  useEffect(() => setAsStep(false), [id])
  const isOpen = id !== null
  useEffect(() => (isOpen ? foldTape() : undefined), [isOpen])
  if (id === null || !block) return null
  return (
    <FieldScopeContext value={scope}>
      {block.type === 'agent' && !asStep ? (
        <AgentSheet key={id} id={id} mode={mode} onSettings={() => setAsStep(true)} />
      ) : (
        <StepSheet
          key={id}
          id={id}
          mode={mode}
          {...(block.type === 'agent' ? { onTalk: () => setAsStep(false) } : {})}
        />
      )}
    </FieldScopeContext>
  )
}
