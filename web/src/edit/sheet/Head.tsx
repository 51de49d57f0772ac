// The head of a sheet: plate and name of the block, what it is and where it stands in the run, and the iteration that is looked at.

import type { ReactElement, ReactNode } from 'react'
import { useStore } from 'zustand'
import { chainOf, kindOf, nameOf } from '../../document/document'
import { shapeOf } from '../../geometry/silhouette'
import { scopesAt, shownStatus, type NodeState } from '../../run'
import { runStore } from '../../state/live'
import { setIter, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { toneOf, wordOf } from '../../ui/status'
import { Plate } from '../../canvas/plate'
import { useFieldScope } from '../../forms/fields/scope'
import { ScopeButtons } from '../inspector/ScopeButtons'
import { close } from './Frame'

export function Head({
  id,
  node,
  detail,
  children,
}: {
  id: string
  node: NodeState | undefined
  detail?: string
  children: ReactNode
}): ReactElement {
  const { doc, specs } = useFieldScope()
  const run = useStore(runStore, (state) => state.id)
  const block = doc.blocks[id]!
  const spec = specs.get(block.type)
  const status = node ? shownStatus(node) : null
  return (
    <header className="wsheet__head">
      <span className="wsheet__plate" data-tone={status ? toneOf(status) : undefined}>
        <Plate block={block} spec={spec} shape={shapeOf(block, spec)} />
      </span>
      <div className="wsheet__title">
        <h2>{nameOf(doc, id)}</h2>
        <p>
          {[spec?.title ?? block.type, detail].filter(Boolean).join(', ')}
          {status && run ? (
            <>
              , {wordOf(status).toLowerCase()} in run <span className="mono">{run.slice(-8)}</span>
            </>
          ) : (
            ', not run yet'
          )}
        </p>
      </div>
      <span className="wsheet__gap" />
      <Iterations id={id} />
      {children}
      <Button kind="bare" icon="close" iconOnly data-testid="sheet-close" onClick={close}>
        Close
      </Button>
    </header>
  )
}

/** One selector for each container around, the innermost last. */
function Iterations({ id }: { id: string }): ReactElement {
  const { doc } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  return (
    <>
      {chainOf(doc, id)
        .reverse()
        .map((container) => {
          const { scopes, index } = scopesAt(view, doc, container, iter)
          if (!scopes.length) return null
          const word = kindOf(doc, container) === 'parallel' ? 'branch' : 'iteration'
          return (
            <span
              key={container}
              className="wsheet__seg"
              role="group"
              aria-label={`${word} of ${nameOf(doc, container)}`}
            >
              <ScopeButtons container={container} index={index} scopes={scopes} word={word}>
                <b data-testid={`sheet-iter-${container}`}>
                  {nameOf(doc, container)} {index + 1} of {scopes.length}
                </b>
              </ScopeButtons>
            </span>
          )
        })}
    </>
  )
}

/** Turn the innermost container by one. */
export function turnIteration(id: string, by: 1 | -1): boolean {
  const { doc, view } = runStore.getState()
  const { iter } = uiStore.getState()
  const container = doc ? chainOf(doc, id)[0] : undefined
  if (!doc || container === undefined) return false
  const { scopes, index } = scopesAt(view, doc, container, iter)
  if (!scopes[index + by]) return false
  setIter(container, index + by)
  return true
}
