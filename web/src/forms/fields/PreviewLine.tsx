// The values of a text in the run that is shown: one line below the field that has the focus. Grey when a block it reads was changed
// since that run.

import { useMemo, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { find } from '../../refs/parse'
import type { Document } from '../../api/types'
import type { Specs } from '../../document/document'
import { preview, previewRefs, render, type Values } from '../../refs/preview'
import { resolve } from '../../refs/scope'
import { useFieldScope, type ShownRun } from './scope'

const SHOWN = 160

/** The values that the references of a text have in the run that is shown, by their text. */
export function useValues(text: string, inside: boolean): ReadonlyMap<string, Json | undefined> {
  const { block, doc, specs, run } = useFieldScope()
  return useMemo(() => {
    if (!run || block === null || !text.includes('<')) return NONE
    const known = previewRefs(text, { block, inside }, valuesOf(run, doc, specs)).filter((each) => each.known)
    return new Map(known.map((each) => [each.text, each.value]))
  }, [text, inside, run, doc, block, specs])
}

const NONE: ReadonlyMap<string, Json | undefined> = new Map()

/** The document as it is now: keys of a run are ids, which renaming leaves alone. */
function valuesOf({ view, iter, input }: ShownRun, doc: Document, specs: Specs): Values {
  return { view, doc, iter, specs, ...(input === undefined ? {} : { input }) }
}

export function PreviewLine({
  text,
  inside,
  expression,
}: {
  text: string
  inside: boolean
  expression: boolean
}): ReactElement | null {
  const scope = useFieldScope()
  const { block, doc, specs, run } = scope
  const values = useValues(text, inside)
  const lines = useMemo(() => {
    if (!values.size || !run || block === null) return []
    if (expression) return [...values].map(([name, value]) => `${name} = ${short(value)}`)
    const shown = preview(text, { block, inside }, valuesOf(run, doc, specs))
    return shown?.known ? [`= ${short(shown.value)}`] : []
  }, [values, text, inside, expression, run, doc, block, specs])
  if (!lines.length) return null
  const stale = isStale(text, scope)
  return (
    <p
      className="ref__preview"
      data-stale={stale || undefined}
      data-testid="preview"
      title={stale ? 'Value from a run before your last change' : 'Value from the last run'}
    >
      {lines.map((line) => (
        <span key={line}>{line}</span>
      ))}
      {stale ? <span className="visually-hidden">from a run before your last change</span> : null}
    </p>
  )

  function isStale(of: string, { run: shown, ...rest }: typeof scope): boolean {
    if (!shown || shown.doc === doc) return false
    return find(of).some((found) => {
      const target = resolve(doc, found, { block: block!, inside }, rest.specs)
      if (target?.kind !== 'block') return false
      const [now, then] = [doc.blocks[target.block], shown.doc.blocks[target.block]]
      return (
        now !== then &&
        JSON.stringify([now?.type, now?.params, now?.policy]) !==
          JSON.stringify([then?.type, then?.params, then?.policy])
      )
    })
  }
}

function short(value: Json | undefined): string {
  const text = value === undefined ? 'null' : typeof value === 'string' ? JSON.stringify(value) : render(value)
  return text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
}
