// A text that may hold references: a textarea with the same text painted behind it, so that references are chips and wrong ones
// are underlined, and the browser's own editing stays as it is. `<` and `${` open what can be read from here.

import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { complete, intoReference, typedAt, type CompleteContext, type Option } from '../../refs/complete'
import type { Reader } from '../../refs/scope'
import { Icon } from '../../ui/icons'
import { checkRefs, type Mark } from './check'
import { isOpenSecret } from './kind'
import { PreviewLine, useValues } from './PreviewLine'
import { brief, groupsOf, RefMenu } from './RefMenu'
import { lastValue, useFieldScope } from './scope'
import './fields.css'

export interface ReferenceFieldProps {
  value: string
  onChange: (text: string) => void
  onBlur?: () => void
  /** Name for assistive technology, when no <label> has `id`. */
  label?: string
  id?: string
  testId?: string
  multiline?: boolean
  rows?: number
  mono?: boolean
  placeholder?: string
  describedBy?: string
  invalid?: boolean
  /** The text is a loop's own test: it reads from inside the loop. */
  inside?: boolean
  /** An expression is not filled in but computed: the preview lists its references. */
  expression?: boolean
  /** The text is JSON: a reference outside of quotes gets some. */
  json?: boolean
  preview?: boolean
  /** A button opens what can be read: in place of the text, or to be inserted where the caret is. */
  pick?: boolean | 'insert'
  /** It signs in to a service: what is typed is covered, but for references. */
  secret?: boolean
}

interface Typing {
  start: number
  end: number
  options: Option[]
}

export function ReferenceField(props: ReferenceFieldProps): ReactElement {
  const { value, onChange, multiline = false, expression = false, inside = false } = props
  const scope = useFieldScope()
  const { doc, block, specs, env, readonly } = scope
  const [typing, setTyping] = useState<Typing | null>(null)
  const [active, setActive] = useState(0)
  const [shown, setShown] = useState(false)
  // Errors are marked once the field is left.
  const [typed, setTyped] = useState(false)
  const open = props.secret === true && isOpenSecret(value)
  const area = useRef<HTMLTextAreaElement>(null)
  const paint = useRef<HTMLDivElement>(null)
  const caretNext = useRef<number | null>(null)
  const id = useId()
  const reader = useMemo(() => (block === null ? null : { block, inside }), [block, inside])
  const marks = useMemo(
    () => (reader ? checkRefs(value, { doc, reader, specs, env, lastOutput: (other) => lastValue(scope, other) }) : []),
    [value, doc, reader, specs, env, scope.run],
  )
  const values = useValues(value, inside)
  const wrong = typed ? undefined : marks.find((mark) => !mark.ok)

  useEffect(() => {
    if (caretNext.current === null) return
    area.current?.setSelectionRange(caretNext.current, caretNext.current)
    caretNext.current = null
  }, [value])

  const context = (reads: Reader): CompleteContext => ({
    doc,
    reader: reads,
    specs,
    env: env ?? [],
    lastOutput: (other) => lastValue(scope, other),
  })

  const look = (text: string, caret: number): void => {
    const at = reader && !readonly ? typedAt(text, caret) : null
    if (!at || !reader) return setTyping(null)
    const found = complete(at.typed, context(reader), at.env)
    const options = groupsOf(found, doc, reader, specs).flatMap((group) => group.options)
    // What is typed to its end and fits nothing else needs no menu: `a < b` stays prose.
    const done = options.length === 1 && text.slice(at.start, at.end) === options[0]!.insert && !options[0]!.more
    setActive(0)
    setTyping(options.length && !done ? { start: at.start, end: at.end, options } : null)
  }

  const replace = (start: number, end: number, text: string, caret: number, again: boolean): void => {
    const next = value.slice(0, start) + text + value.slice(end)
    caretNext.current = caret
    onChange(next)
    if (again) look(next, caret)
    else setTyping(null)
  }

  const choose = (option: Option, into: boolean): void => {
    if (!typing) return
    if (into && option.more) {
      const open = `${option.insert.slice(0, -1)}.`
      return replace(typing.start, typing.end, open, typing.start + open.length, true)
    }
    const text = props.json && !isQuoted(value.slice(0, typing.start)) ? JSON.stringify(option.insert) : option.insert
    replace(typing.start, typing.end, text, typing.start + text.length, false)
  }

  const out = (): boolean => {
    if (!typing) return false
    const typed = value.slice(typing.start, area.current!.selectionStart)
    const cut = typed.replace(/[.[][^.[]*$/, '')
    if (cut === typed) return false
    const up = cut.includes('.') ? cut.replace(/\.[^.]*$/, '.') : '<'
    replace(typing.start, typing.end, up, typing.start + up.length, true)
    return true
  }

  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    const { key } = event
    if (typing) {
      const count = typing.options.length
      const option = typing.options[active]
      const plain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey
      if (key === 'ArrowDown') setActive((active + 1) % count)
      else if (key === 'ArrowUp') setActive((active + count - 1) % count)
      else if ((key === 'Enter' || key === 'Tab') && plain && option) choose(option, false)
      else if (key === 'ArrowRight' && plain && option?.more) choose(option, true)
      else if (key === 'ArrowLeft' && plain && out()) {
        /* went up */
      } else if (key === 'Escape') setTyping(null)
      else return
      event.preventDefault()
      event.stopPropagation()
      return
    }
    if (key === ' ' && event.ctrlKey && reader && !readonly) {
      event.preventDefault()
      const { selectionStart, selectionEnd } = event.currentTarget
      replace(selectionStart, selectionEnd, '<', selectionStart + 1, true)
    } else if (key === 'Enter' && !multiline && !event.metaKey && !event.ctrlKey) {
      event.preventDefault()
      if (!reader) event.currentTarget.form?.requestSubmit()
    }
  }

  const menuId = `${id}-menu`
  return (
    <div className="ref">
      <div
        className={`ref__box${props.mono ? ' ref__box--mono' : ''}${props.pick || open ? ' ref__box--pick' : ''}`}
        data-covered={(open && !shown) || undefined}
        data-readonly={readonly || undefined}
        style={{ minHeight: 32 + ((props.rows ?? 1) - 1) * 18 }}
      >
        <div ref={paint} className="ref__paint" aria-hidden="true">
          {painted(value, typed ? marks.map((mark) => ({ ...mark, ok: true })) : marks)}
        </div>
        {values.size ? (
          <div className="ref__values" aria-hidden="true">
            {valued(value, marks, values)}
          </div>
        ) : null}
        <textarea
          ref={area}
          id={props.id}
          data-testid={props.testId}
          className="ref__text"
          data-json={props.json || undefined}
          rows={1}
          spellCheck={!props.mono && !expression}
          value={value}
          readOnly={readonly}
          autoComplete="off"
          autoCapitalize="off"
          aria-label={props.label}
          aria-multiline={multiline}
          placeholder={props.placeholder}
          aria-invalid={props.invalid || wrong ? true : undefined}
          aria-describedby={[props.describedBy, wrong ? `${id}-wrong` : ''].filter(Boolean).join(' ') || undefined}
          aria-autocomplete={reader ? 'list' : undefined}
          aria-haspopup={reader ? 'listbox' : undefined}
          aria-controls={typing ? menuId : undefined}
          aria-activedescendant={typing ? `${menuId}-${active}` : undefined}
          onKeyDown={onKey}
          onBlur={() => {
            setTyping(null)
            setTyped(false)
            props.onBlur?.()
          }}
          onClick={(event) => look(value, event.currentTarget.selectionStart)}
          onChange={(event) => {
            setTyped(true)
            const next = multiline ? event.target.value : event.target.value.replace(/\r?\n/g, ' ')
            const into =
              reader && next.length > value.length
                ? intoReference(next, event.target.selectionStart, context(reader))
                : null
            const { text, caret } = into ?? { text: next, caret: event.target.selectionStart }
            if (into) caretNext.current = caret
            onChange(text)
            look(text, caret)
          }}
        />
        {open ? (
          <button
            type="button"
            className="ref__pick"
            aria-label={`${shown ? 'Hide' : 'Show'} ${props.label ?? 'the value'}`}
            title={shown ? 'Hide' : 'Show'}
            onClick={() => setShown(!shown)}
          >
            <Icon name="eye" size={14} />
          </button>
        ) : props.pick && reader && !readonly ? (
          <button
            type="button"
            className="ref__pick"
            aria-label={props.pick === 'insert' ? 'Insert a value' : `Choose ${props.label ?? 'a value'}`}
            title={props.pick === 'insert' ? 'Insert a value of an earlier block (type <)' : 'Choose a value'}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => {
              const text = area.current!
              const [from, to] = props.pick === 'insert' ? [text.selectionStart, text.selectionEnd] : [0, value.length]
              text.focus()
              replace(from, to, '<', from + 1, true)
            }}
          >
            <Icon name="link" size={14} />
          </button>
        ) : null}
      </div>
      {typing && reader ? (
        <RefMenu
          id={menuId}
          options={typing.options}
          active={active}
          doc={doc}
          reader={reader}
          specs={specs}
          anchor={() => caretRect(paint.current, typing.start)}
          onActive={setActive}
          onChoose={(option) => choose(option, false)}
          onInto={(option) => choose(option, true)}
        />
      ) : null}
      {open ? (
        <p className="ref__open">
          It would be stored in the workflow as it is typed. Make a connection, or store a secret and write{' '}
          <code>{'${NAME}'}</code>.
        </p>
      ) : null}
      {wrong ? (
        <Wrong
          id={`${id}-wrong`}
          mark={wrong}
          readonly={readonly}
          onFix={(text) => {
            area.current!.focus()
            replace(wrong.start, wrong.end, text, wrong.start + text.length, false)
          }}
        />
      ) : null}
      {props.preview === false || !reader ? null : <PreviewLine text={value} inside={inside} expression={expression} />}
    </div>
  )
}

/** Does JSON text end inside a string? */
function isQuoted(before: string): boolean {
  return (before.replace(/\\./g, '').match(/"/g)?.length ?? 0) % 2 === 1
}

function Wrong({
  id,
  mark,
  readonly,
  onFix,
}: {
  id: string
  mark: Mark
  readonly: boolean
  onFix: (text: string) => void
}): ReactElement {
  return (
    <p className="ref__wrong" id={id}>
      {mark.message}
      {mark.fix && !readonly ? (
        <>
          {' '}
          Did you mean{' '}
          <button type="button" className="ref__fix" onClick={() => onFix(mark.fix!)}>
            {mark.fix}
          </button>
          ?
        </>
      ) : null}
    </p>
  )
}

/** The text as it reads while it is not edited: the name of what is read, and its value in the run that is shown. */
function valued(text: string, marks: readonly Mark[], values: ReadonlyMap<string, Json | undefined>): ReactElement[] {
  const names = marks.map((mark) => nameIn(text.slice(mark.start, mark.end)))
  let at = 0
  const parts = marks.flatMap((mark, i) => {
    const whole = text.slice(mark.start, mark.end)
    const before = text.slice(at, mark.start)
    at = mark.end
    const alone = names.filter((name) => name === names[i]).length === 1
    return [
      <span key={`t${mark.start}`}>{before}</span>,
      <span key={`m${mark.start}`} className={mark.ok ? 'chip-value' : 'chip-ref chip-ref--wrong'} title={whole}>
        {mark.ok && alone ? names[i] : whole}
        {values.has(whole) ? <i>{brief(values.get(whole) ?? null, 24)}</i> : null}
      </span>,
    ]
  })
  return [...parts, <span key="end">{text.slice(at)}</span>]
}

/** `<fetch.body.order ?? 0>` is called `order`. */
function nameIn(reference: string): string {
  const path = reference.slice(1, -1).split('??')[0]!.trim()
  return /\.([A-Za-z_][\w-]*)$/.exec(path)?.[1] ?? path
}

function painted(text: string, marks: readonly Mark[]): ReactElement[] {
  const out: ReactElement[] = []
  let at = 0
  for (const mark of marks) {
    out.push(<span key={`t${at}`}>{text.slice(at, mark.start)}</span>)
    out.push(
      <span
        key={`m${mark.start}`}
        className={mark.ok ? (mark.env ? 'chip-ref chip-ref--env' : 'chip-ref') : 'chip-ref chip-ref--wrong'}
      >
        {text.slice(mark.start, mark.end)}
      </span>,
    )
    at = mark.end
  }
  // A last line that is empty has no height of its own.
  out.push(
    <span key="end">
      {text.slice(at)}
      {text.endsWith('\n') || !text ? '\u200b' : ''}
    </span>,
  )
  return out
}

/** Where the character at `offset` is drawn, in the window. */
function caretRect(paint: HTMLElement | null, offset: number): DOMRect | null {
  if (!paint) return null
  const walker = document.createTreeWalker(paint, NodeFilter.SHOW_TEXT)
  let left = offset
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const length = node.textContent!.length
    if (left < length) {
      const range = document.createRange()
      range.setStart(node, left)
      range.setEnd(node, left + 1)
      return range.getClientRects()[0] ?? range.getBoundingClientRect()
    }
    left -= length
  }
  return paint.getBoundingClientRect()
}
