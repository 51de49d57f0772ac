import { useStore } from 'zustand'
import type { ReactElement, ReactNode } from 'react'
import { setPanels, uiStore } from '../../state/ui'
import { Splitter } from '../../ui/Splitter'

/** The column beside a run, as wide as people have made it. */
export function InspectorColumn({ children }: { children: ReactNode }): ReactElement {
  const width = useStore(uiStore, (s) => s.panels.inspector)
  return (
    <>
      <Splitter
        label="Width of the inspector"
        value={width}
        min={240}
        max={640}
        panel="after"
        onChange={(inspector) => setPanels({ inspector })}
      />
      <aside className="run__inspector" style={{ width }} aria-label="Inspector">
        {children}
      </aside>
    </>
  )
}
