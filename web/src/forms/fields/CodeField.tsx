// A program: the code editor, with references marked and completed as in any text. Until it is loaded, a plain text field.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { complete, typedAt } from '../../refs/complete'
import type { Specs } from '../../document/document'
import type { CodeEditor, ProgramLanguage } from '../json/codemirror'
import { checkRefs, type CheckContext } from './check'
import type { ControlProps } from './control'
import { PreviewLine } from './PreviewLine'
import { ReferenceField } from './ReferenceField'
import { groupsOf } from './RefMenu'
import { lastValue, useFieldScope } from './scope'

const PLACEHOLDERS: Partial<Record<ProgramLanguage, string>> = {
  javascript: 'return <start.amount> * 2',
  python: 'return <start.amount> * 2',
  sql: 'SELECT id, name FROM orders WHERE day > :since',
}

export function CodeField({ schema, hint, value, onChange, path, ids, label }: ControlProps): ReactElement {
  const scope = useFieldScope()
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<CodeEditor | null>(null)
  const [ready, setReady] = useState(false)
  const refers = schema['x-weft'] !== 'literal'
  const text = typeof value === 'string' ? value : ''
  const language = hint.language ?? languageIn(scope)
  // The editor outlives renders: its callbacks look at what is now.
  const now = useRef({ scope, onChange, text, language })
  now.current = { scope, onChange, text, language }

  useEffect(() => {
    let gone = false
    void import('../json/codemirror').then(({ createEditor }) => {
      if (gone || !host.current) return
      editor.current = createEditor({
        host: host.current,
        text: now.current.text,
        language: now.current.language,
        label,
        readonly: now.current.scope.readonly,
        placeholder: PLACEHOLDERS[now.current.language],
        onChange: (next) => now.current.onChange(next === '' ? undefined : next),
        refs: (code) =>
          !refers || now.current.scope.block === null ? [] : checkRefs(code, contextOf(now.current.scope)),
        complete: (code, caret) => (refers ? completions(code, caret, now.current.scope) : null),
      })
      setReady(true)
    })
    return () => {
      gone = true
      editor.current?.destroy()
      editor.current = null
    }
  }, [])
  useEffect(() => void editor.current?.setText(text), [text, ready])
  useEffect(() => void editor.current?.setLanguage(language), [language, ready])
  useEffect(() => void editor.current?.setReadonly(scope.readonly), [scope.readonly, ready])
  useEffect(() => void editor.current?.refresh(), [scope.doc, scope.env, ready])

  return (
    <div className="code" data-invalid={ids.invalid || undefined}>
      <div ref={host} className="code__host" data-testid={`field-${path}`} hidden={!ready} />
      {ready ? null : (
        <ReferenceField
          label={label}
          value={text}
          multiline
          mono
          rows={6}
          onChange={(next) => onChange(next === '' ? undefined : next)}
          preview={false}
        />
      )}
      {refers ? <PreviewLine text={text} inside={false} expression /> : null}
    </div>
  )
}

type Scope = ReturnType<typeof useFieldScope>

/** What the parameter beside the code says. */
function languageIn(scope: Scope): ProgramLanguage {
  const block = scope.block === null ? undefined : scope.doc.blocks[scope.block]
  return block?.params?.language === 'python' ? 'python' : 'javascript'
}

function contextOf(scope: Scope): CheckContext & { specs: Specs } {
  return {
    doc: scope.doc,
    reader: { block: scope.block! },
    specs: scope.specs,
    env: scope.env,
    lastOutput: (block: string) => lastValue(scope, block),
  }
}

function completions(code: string, caret: number, scope: Scope) {
  const at = scope.block === null ? null : typedAt(code, caret)
  if (!at) return null
  const { doc, reader, specs, lastOutput } = contextOf(scope)
  const found = complete(at.typed, { doc, reader, specs, lastOutput, env: scope.env ?? [] }, at.env)
  const options = groupsOf(found, doc, reader, specs).flatMap((group) =>
    group.options.map((option) => ({ ...option, group: group.title })),
  )
  return options.length ? { from: at.start, to: at.end, options } : null
}
