// Everything the server found in the document, errors first; a click goes to the place.

import { useMemo, type ReactElement } from 'react'
import { useShallow } from 'zustand/react/shallow'
import { useStore } from 'zustand'
import type { Diagnostic } from '../../api/schemas'
import { docStore, specsStore } from '../../state/doc'
import { unfinishedFindings, unfinishedStore } from '../../state/unfinished'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon, iconOf } from '../../ui/icons'
import { sentence } from '../../ui/words'
import { placedFindings } from '../../forms/fields/scope'
import { goToFinding, placeOfFinding } from '../../actions/findings'
import './problems.css'

export default function Problems(): ReactElement {
  const doc = useStore(docStore, (state) => state.doc)
  const diagnostics = useStore(docStore, (state) => state.diagnostics)
  const specs = useStore(specsStore, (state) => state.specs)
  const { saving, draft } = useStore(
    docStore,
    useShallow((state) => ({ saving: state.saving, draft: state.id })),
  )
  const unfinished = useStore(unfinishedStore, (state) => state.list)
  const rows = useMemo(
    () =>
      sorted([
        ...unfinishedFindings(unfinished, draft).filter((each) => each.block && doc.blocks[each.block]),
        ...placedFindings(diagnostics),
      ]),
    [diagnostics, unfinished, draft, doc],
  )
  if (!rows.length && (saving === 'dirty' || saving === 'saving')) return <EmptyState title="Checking the workflow" />
  if (!rows.length && saving !== 'saved')
    return (
      <EmptyState icon="warning" title="Not checked">
        The last changes are not saved on the server.
      </EmptyState>
    )
  if (!rows.length)
    return (
      <EmptyState icon="succeeded" title="No problems">
        Checked each time the workflow is saved.
      </EmptyState>
    )
  return (
    <>
      <SetupRow />
      <ul className="problems" aria-label="Problems" data-testid="problems">
        {rows.map((each, i) => {
          const place = placeOfFinding(doc, each, specs)
          const type = place.block ? doc.blocks[place.block]?.type : undefined
          return (
            <li key={i}>
              <button
                type="button"
                className="problem"
                data-severity={each.severity}
                data-testid={`problem-${i}`}
                onClick={() => goToFinding(doc, each, specs)}
              >
                <Icon name={each.severity === 'error' ? 'failed' : 'warning'} label={each.severity} />
                <span className="problem__place">
                  {type ? <Icon name={iconOf(type)} size={14} /> : null}
                  {place.words}
                </span>
                <span className="problem__text">
                  {sentence(each.message)}
                  {each.hint ? <span className="finding__hint"> {sentence(each.hint)}</span> : null}
                </span>
                <code className="problem__code">{each.code}</code>
              </button>
            </li>
          )
        })}
      </ul>
    </>
  )
}

/** The same as a list that is worked through. */
function SetupRow(): ReactElement | null {
  const left = useStore(docStore, (state) => state.tasks.filter((task) => task.kind !== 'triggers').length)
  const open = useStore(uiStore, (state) => state.setup)
  const readonly = useStore(docStore, (state) => state.readonly)
  if (!left || open || readonly) return null
  return (
    <p className="problems__setup">
      {left === 1 ? 'One thing is' : `${left} things are`} left before this workflow runs.{' '}
      <Button data-testid="open-setup" onClick={() => uiStore.setState({ setup: true })}>
        Set up
      </Button>
    </p>
  )
}

/** How many there are, for a tab: "2 errors, 1 warning" counts as 3. */
export function useProblemCount(): { errors: number; warnings: number } {
  const diagnostics = useStore(docStore, (state) => state.diagnostics)
  const errors = diagnostics.filter((each) => each.severity === 'error').length
  return { errors, warnings: diagnostics.length - errors }
}

function sorted(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...diagnostics].sort((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'))
}
