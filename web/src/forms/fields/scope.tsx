// What every field of a form knows besides its own value: whose references it may hold, what the server found, what the last
// run gave. A form without a block (a dialog of the settings) has `block` null, and no references.

import { createContext, useContext } from 'react'
import type { Diagnostic, Json } from '../../api/schemas'
import type { Document } from '../../api/types'
import { escapePointer } from '../../refs/parse'
import { nodeAt, type Iter, type RunFold } from '../../run'
import { emptyDocument, NO_SPECS, type Specs } from '../../document/document'

/** A run whose values are shown below references; `doc` is the document it was made from. */
export interface ShownRun {
  view: RunFold
  doc: Document
  iter: Iter
  input: Json | undefined
}

export interface FieldScope {
  doc: Document
  block: string | null
  specs: Specs
  readonly: boolean
  /** The block was just added: what is missing in it is shown when a field is left, or a run is asked for. */
  calm: boolean
  diagnostics: readonly Diagnostic[]
  run: ShownRun | null
  /** Environment names; null while they are not known. */
  env: readonly string[] | null
}

const NO_SCOPE: FieldScope = {
  doc: emptyDocument(),
  block: null,
  specs: NO_SPECS,
  readonly: false,
  calm: false,
  diagnostics: [],
  run: null,
  env: null,
}

export const FieldScopeContext = createContext<FieldScope>(NO_SCOPE)

export const useFieldScope = (): FieldScope => useContext(FieldScopeContext)

/** Findings as fields show them: a missing param is found at its own place, and no text says again which block it is about. */
export function placedFindings(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return diagnostics.map((each) => {
    const pointer =
      each.field && each.pointer.endsWith('/params') ? `${each.pointer}/${escapePointer(each.field)}` : each.pointer
    const message = each.message.replace(/^(?:[\w ]{1,40} )?"[^"]*": /, '')
    // Advice to those who write documents by hand is of no use beside a form.
    const hint = each.hint && !each.hint.startsWith('docs/') ? each.hint : undefined
    const { hint: _, ...rest } = each
    return { ...rest, pointer, message: message.charAt(0).toUpperCase() + message.slice(1), ...(hint ? { hint } : {}) }
  })
}

/** Findings at a place of the document, or below it. */
export function findingsAt(diagnostics: readonly Diagnostic[], pointer: string, below: boolean): Diagnostic[] {
  return diagnostics.filter((each) => each.pointer === pointer || (below && each.pointer.startsWith(`${pointer}/`)))
}

export function lastValue(scope: FieldScope, block: string): Json | undefined {
  const { run } = scope
  return run && scope.doc.blocks[block] ? nodeAt(run.view, scope.doc, block, run.iter)?.output : undefined
}
