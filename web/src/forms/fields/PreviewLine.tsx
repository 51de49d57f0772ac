// What a text reads in the run that is shown: one line below the field. Grey when a block it reads was changed since that run.

import { useMemo, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { find } from '../../refs/parse'
import { preview, previewRefs, render } from '../../refs/preview'
import { resolve } from '../../refs/scope'
import { useFieldScope } from './scope'

const SHOWN = 160

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
  const lines = useMemo(() => {
    if (!run || block === null || !text.includes('<')) return []
    // The document as it is now: keys of a run are ids, which renaming leaves alone.
    const values = {
      view: run.view,
      doc,
      iter: run.iter,
      specs,
      ...(run.input === undefined ? {} : { input: run.input }),
    }
    const reader = { block, inside }
    if (expression) {
      const seen = new Set<string>()
      return previewRefs(text, reader, values)
        .filter((each) => each.known && !seen.has(each.text) && seen.add(each.text))
        .map((each) => `${each.text} = ${short(each.value)}`)
    }
    const shown = preview(text, reader, values)
    return shown?.known ? [`= ${short(shown.value)}`] : []
  }, [text, inside, expression, run, doc, block, specs])
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
