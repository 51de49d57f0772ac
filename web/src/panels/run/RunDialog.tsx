// Before a run: what it is given, as a form made from the workflow, or as JSON. What is needed must be there first.

import { useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText } from '../../keys'
import { ApiError } from '../../net/api'
import type { Diagnostic, Json, JsonObject } from '../../net/types'
import { docStore, specsStore } from '../../state/doc'
import { chainOf, isTrigger, nameOf, readingOrder } from '../../document/document'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon } from '../../ui/icons'
import { MenuButton } from '../../ui/Menu'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { Field } from '../fields/Field'
import { Findings } from '../fields/FieldShell'
import { readJson } from '../fields/JsonText'
import { placedFindings } from '../fields/scope'
import { brief } from '../fields/RefMenu'
import { startValues, valueProblems } from '../fields/form'
import { formSchema, triggersOf } from '../../document/triggers'
import { asCurl } from './curl'
import { isPinned, togglePin, withPins } from './pins'
import { lastInputs, runDraft } from '../../actions/start'
import { printJson } from '../json/print'
import '../inspector/inspector.css'
import './run.css'

export default function RunDialog(): ReactElement | null {
  const open = useStore(uiStore, (state) => state.overlay === 'run')
  return open ? <Opened /> : null
}

function Opened(): ReactElement {
  const doc = useStore(docStore, (state) => state.doc)
  const draft = useStore(docStore, (state) => state.id)
  const specs = useStore(specsStore, (state) => state.specs)
  const diagnostics = useStore(docStore, (state) => state.diagnostics)
  const triggers = useMemo(() => triggersOf(doc, specs), [doc, specs])
  const [trigger, setTrigger] = useState<string | null>(triggers[0]?.id ?? null)
  const schema = useMemo(() => formSchema(doc, trigger), [doc, trigger])
  const hasForm = Object.keys(schema.properties ?? {}).length > 0
  const [tab, setTab] = useState<'form' | 'json'>(hasForm ? 'form' : 'json')
  const [input, setInput] = useState<Json>(() => startValues(schema))
  const [text, setText] = useState(() => printJson(startValues(schema)))
  const [tried, setTried] = useState(false)
  const [stopAfter, setStopAfter] = useState('')
  const [pinned, setPinned] = useState(0)
  const [refused, setRefused] = useState<{ message: string; hint: string; diagnostics: Diagnostic[] } | null>(null)
  const [starting, setStarting] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const last = useData(lastInputs, [draft])

  const offered = useMemo(() => withPins(draft ?? '', last.value ?? []), [draft, last.value, pinned])
  const stops = useMemo(
    () =>
      readingOrder(doc).filter(
        (id) =>
          !isTrigger(doc.blocks[id], specs) &&
          specs.get(doc.blocks[id]!.type)?.category !== 'annotation' &&
          chainOf(doc, id).length === 0,
      ),
    [doc, specs],
  )

  const close = (): void => uiStore.setState({ overlay: null })
  const read = readJson(text)
  const problems = useMemo(() => valueProblems(schema, input), [schema, input])
  const reasons = Object.values(problems)
  const errors = diagnostics.filter((each) => each.severity === 'error')
  const why = !triggers.length
    ? 'This workflow has no trigger. Add a Start block.'
    : tab === 'json' && !read.ok
      ? `Invalid JSON: ${read.why}`
      : reasons.length
        ? reasons[0]!
        : null

  useEffect(() => {
    form.current?.querySelector<HTMLElement>('textarea, input, select')?.focus()
  }, [])

  const take = (value: Json): void => {
    setInput(value)
    setText(printJson(value))
    if (hasForm && (value === null || typeof value !== 'object' || Array.isArray(value))) setTab('json')
  }
  /** Another trigger asks for other input; what was typed for the one before is not its. */
  const begin = (next: string): void => {
    const asked = formSchema(doc, next)
    setTrigger(next)
    setInput(startValues(asked))
    setText(printJson(startValues(asked)))
    setTab(Object.keys(asked.properties ?? {}).length > 0 ? 'form' : 'json')
    setTried(false)
  }
  const turn = (to: 'form' | 'json'): void => {
    if (to === 'json') setText(printJson(input))
    setTab(to)
  }
  const start = async (): Promise<void> => {
    setTried(true)
    const marked = form.current?.querySelector<HTMLElement>('[aria-invalid=true]')
    if (why || starting) return void marked?.focus()
    if (marked) {
      // Text that is no JSON yet: the run would start with the value before it.
      setRefused({ message: 'A field contains invalid JSON.', hint: 'Fix it, or clear the field.', diagnostics: [] })
      return marked.focus()
    }
    setStarting(true)
    setRefused(null)
    try {
      await runDraft(input, {
        ...(triggers.length > 1 && trigger !== null ? { trigger } : {}),
        ...(stopAfter ? { stopAfter } : {}),
      })
      close()
    } catch (error) {
      const known = error instanceof ApiError
      setRefused({
        message: error instanceof Error ? error.message : String(error),
        hint: known ? error.hint : '',
        diagnostics: known ? placedFindings(error.diagnostics.filter((each) => each.severity === 'error')) : [],
      })
    } finally {
      setStarting(false)
    }
  }
  const copyCurl = async (): Promise<void> => {
    await navigator.clipboard.writeText(
      asCurl(location.origin, draft ?? '', input, triggers.length > 1 ? trigger : null),
    )
    toast('Copied curl command', 'ok')
  }

  return (
    <Dialog
      title={`Run ${doc.name ?? 'workflow'}`}
      open
      onClose={close}
      foot={
        <>
          <Button kind="bare" icon="copy" className="rundialog__curl" onClick={() => void copyCurl()}>
            Copy as curl
          </Button>
          {why && (tried || !triggers.length) ? (
            <span className="rundialog__why" role="status">
              {why}
            </span>
          ) : null}
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            icon="play"
            data-testid="run-start"
            keys={keyText('run')}
            why={(tried || !triggers.length ? why : null) ?? (starting ? 'Starting' : null)}
            onClick={() => void start()}
          >
            Run
          </Button>
        </>
      }
    >
      <form
        ref={form}
        className="rundialog"
        data-testid="run-dialog"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void start()
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return
          event.preventDefault()
          event.stopPropagation()
          void start()
        }}
      >
        {errors.length ? (
          <p className="rundialog__note" data-tone="err">
            <Icon name="failed" />
            The workflow has {errors.length === 1 ? 'an error' : `${errors.length} errors`}. It may not run.{' '}
            <button
              type="button"
              className="linklike"
              onClick={() => (uiStore.setState({ drawer: 'problems' }), close())}
            >
              Show
            </button>
          </p>
        ) : null}
        <div className="rundialog__bar">
          {hasForm ? (
            <div className="segment" role="group" aria-label="Input as">
              <button
                type="button"
                aria-pressed={tab === 'form'}
                onClick={() => turn('form')}
                data-testid="run-tab-form"
              >
                Form
              </button>
              <button
                type="button"
                aria-pressed={tab === 'json'}
                onClick={() => turn('json')}
                data-testid="run-tab-json"
              >
                JSON
              </button>
            </div>
          ) : null}
          {triggers.length > 1 ? (
            <label className="rundialog__trigger">
              <span className="label">Trigger</span>
              <select value={trigger ?? ''} data-testid="run-trigger" onChange={(event) => begin(event.target.value)}>
                {triggers.map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.name}
                  </option>
                ))}
              </select>
            </label>
          ) : null}
          {offered.length ? (
            <MenuButton
              kind="plain"
              icon="restored"
              label="Recent inputs"
              className="rundialog__last"
              data-testid="run-last"
              entries={offered.map((each) => ({
                label: brief(each, 64),
                ...(isPinned(draft ?? '', each) ? { icon: 'pin' as const } : {}),
                onSelect: () => take(each),
              }))}
            >
              Recent inputs
            </MenuButton>
          ) : null}
          <Button
            kind="bare"
            icon="pin"
            aria-pressed={isPinned(draft ?? '', input)}
            data-testid="run-pin"
            title="Keep this input at the top of Recent inputs in this browser"
            onClick={() => (togglePin(draft ?? '', input), setPinned(pinned + 1))}
          >
            {isPinned(draft ?? '', input) ? 'Pinned' : 'Pin input'}
          </Button>
        </div>
        {tab === 'form' ? (
          <div className="rundialog__fields">
            {Object.entries(schema.properties ?? {}).map(([name, part]) => (
              <Field
                key={`${trigger} ${name}`}
                type={null}
                name={name}
                schema={part}
                value={isObject(input) ? input[name] : undefined}
                path={name}
                required={schema.required?.includes(name) ?? false}
                error={tried || isTyped(input, name) ? (problems[name] ?? null) : null}
                onChange={(value) => {
                  const { [name]: _, ...rest } = isObject(input) ? input : {}
                  setInput(value === undefined ? rest : { ...rest, [name]: value })
                }}
              />
            ))}
          </div>
        ) : (
          <div className="fld" data-invalid={!read.ok || undefined}>
            <label className="fld__label" htmlFor="run-json">
              Input
            </label>
            <textarea
              id="run-json"
              data-testid="run-json"
              className="mono rundialog__json"
              rows={12}
              spellCheck={false}
              value={text}
              aria-invalid={!read.ok || undefined}
              onChange={(event) => {
                setText(event.target.value)
                const next = readJson(event.target.value)
                if (next.ok) setInput(next.value ?? {})
              }}
            />
            {read.ok ? (
              reasons.map((reason) => (
                <p key={reason} className="finding" data-severity="error">
                  <Icon name="failed" size={14} />
                  <span>{reason}</span>
                </p>
              ))
            ) : (
              <p className="finding" data-severity="error">
                <Icon name="failed" size={14} />
                <span>{read.why}</span>
              </p>
            )}
            {hasForm ? null : (
              <p className="fld__about">
                This workflow has no input fields and accepts any JSON. Add fields to{' '}
                {trigger ? nameOf(doc, trigger) : 'a Start block'} to get a form.
              </p>
            )}
          </div>
        )}
        {refused ? (
          <div className="errorcard" role="alert">
            <p className="errorcard__message">
              <Icon name="failed" />
              {refused.message}
            </p>
            {refused.hint ? <p>{refused.hint}</p> : null}
            <Findings findings={refused.diagnostics} />
          </div>
        ) : null}
        <label className="rundialog__stop">
          <span className="label">Run until</span>
          <select value={stopAfter} data-testid="run-stop" onChange={(event) => setStopAfter(event.target.value)}>
            <option value="">The end</option>
            {stops.map((id) => (
              <option key={id} value={id}>
                {nameOf(doc, id)}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" hidden />
      </form>
    </Dialog>
  )
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Something wrong that was typed is said at once; what is only missing, when the run is tried. */
function isTyped(input: Json, name: string): boolean {
  return isObject(input) && input[name] !== undefined && input[name] !== ''
}
