// Before a run: its input, as a form made from the workflow or as JSON. Required values must be there first.

import { useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText } from '../../keys'
import { ApiError } from '../../net/api'
import type { Diagnostic, Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { docStore, specsStore } from '../../state/doc'
import { chainOf, isTrigger, nameOf, readingOrder } from '../../document/document'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon } from '../../ui/icons'
import { MenuButton } from '../../ui/Menu'
import { copyText } from '../../ui/copy'
import { useData } from '../../ui/useData'
import { Findings } from '../../forms/fields/FieldShell'
import { readJson } from '../../forms/fields/JsonText'
import { placedFindings } from '../../forms/fields/scope'
import { brief } from '../../forms/fields/RefMenu'
import {
  fieldsOf,
  isFormValue,
  labelOf,
  readTyped,
  startValues,
  typedOf,
  valueProblems,
  type Typed,
} from '../../forms/fields/form'
import { focusField, SchemaForm } from '../../forms/fields/SchemaForm'
import { formSchema, triggersOf } from '../../document/triggers'
import { asCurl } from './curl'
import { isPinned, togglePin, withPins } from './pins'
import { lastInputs, runDraft } from '../../actions/start'
import { printJson } from '../../forms/json/print'
import '../../edit/inspector/inspector.css'
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
  const [typed, setTyped] = useState(() => startTyped(schema))
  /** Values of the input that the form has no field for. */
  const [others, setOthers] = useState<JsonObject>({})
  const [text, setText] = useState(() => printJson(startValues(schema)))
  const [tried, setTried] = useState(false)
  const [stopAfter, setStopAfter] = useState('')
  const [pinned, setPinned] = useState(0)
  const [refused, setRefused] = useState<{ message: string; hint: string; diagnostics: Diagnostic[] } | null>(null)
  const [starting, setStarting] = useState(false)
  const element = useRef<HTMLFormElement>(null)
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
  const fields = useMemo(() => fieldsOf(schema), [schema])
  const form = useMemo(() => readTyped(fields, typed), [fields, typed])
  const read = useMemo(() => readJson(text), [text])
  /** undefined: the text is no JSON. */
  const input: Json | undefined =
    tab === 'form' ? { ...others, ...form.values } : read.ok ? (read.value === undefined ? {} : read.value) : undefined
  const problems = useMemo(
    () =>
      tab === 'form' ? form.errors : read.ok ? valueProblems(schema, read.value === undefined ? {} : read.value) : {},
    [tab, form, read, schema],
  )
  const reasons = Object.entries(problems).map(([name, problem]) => {
    const field = fields.find((each) => each.name === name)
    return name === '' ? problem : `${field ? labelOf(field) : name}: ${problem}`
  })
  const errors = diagnostics.filter((each) => each.severity === 'error')
  const pinnedNow = input !== undefined && isPinned(draft ?? '', input)
  const why = !triggers.length
    ? 'This workflow has no trigger. Add a Start block.'
    : tab === 'json' && !read.ok
      ? `Invalid JSON: ${read.why}`
      : reasons.length
        ? `Check the ${tab === 'form' ? 'marked fields' : 'input'}.`
        : null

  useEffect(() => {
    element.current?.querySelector<HTMLElement>('textarea, input, select')?.focus()
  }, [])

  const show = (value: Json, asked: typeof fields, preferred: 'form' | 'json'): void => {
    setText(printJson(value))
    if (isFormValue(asked, value)) {
      const named = new Set(asked.map((field) => field.name))
      setTyped(typedOf(asked, value, printJson))
      setOthers(Object.fromEntries(Object.entries(value).filter(([name]) => !named.has(name))))
      setTab(asked.length ? preferred : 'json')
    } else setTab('json')
  }
  // Nothing was typed yet: it begins with the input of the last run.
  useEffect(() => {
    const latest = last.value?.[0]
    if (latest === undefined || triggers.length > 1 || !hasForm || !isFormValue(fields, latest)) return
    if (JSON.stringify(input) !== JSON.stringify(startValues(schema))) return
    show(latest, fields, tab)
    setTimeout(() => element.current?.querySelector<HTMLInputElement>('textarea, input')?.select())
  }, [last.value])
  /** Another trigger has another form. */
  const choose = (next: string): void => {
    const asked = formSchema(doc, next)
    setTrigger(next)
    setOthers({})
    show(startValues(asked), fieldsOf(asked), 'form')
    setTried(false)
  }
  const whyNoForm =
    tab === 'form'
      ? null
      : input === undefined
        ? 'Invalid JSON'
        : isFormValue(fields, input)
          ? null
          : 'The form cannot show this input'
  const start = async (): Promise<void> => {
    setTried(true)
    if (starting) return
    if (why) return focusField(element.current, Object.keys(problems)[0] ?? '')
    setStarting(true)
    setRefused(null)
    try {
      await runDraft(input ?? {}, {
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
  const copyCurl = (): Promise<void> =>
    copyText(
      asCurl(location.origin, draft ?? '', input ?? {}, triggers.length > 1 ? trigger : null),
      'Copied curl command',
    )

  return (
    <Dialog
      title={`Run ${doc.name ?? 'workflow'}`}
      open
      onClose={close}
      foot={
        <>
          <Button
            kind="bare"
            icon="copy"
            className="rundialog__curl"
            why={input === undefined ? 'Invalid JSON' : null}
            onClick={() => void copyCurl()}
          >
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
        ref={element}
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
                aria-disabled={whyNoForm !== null || undefined}
                title={whyNoForm ?? undefined}
                onClick={() => tab === 'json' && whyNoForm === null && show(input!, fields, 'form')}
                data-testid="run-tab-form"
              >
                Form
              </button>
              <button
                type="button"
                aria-pressed={tab === 'json'}
                onClick={() => tab === 'form' && show(input!, fields, 'json')}
                data-testid="run-tab-json"
              >
                JSON
              </button>
            </div>
          ) : null}
          {triggers.length > 1 ? (
            <label className="rundialog__trigger">
              <span className="label">Trigger</span>
              <select value={trigger ?? ''} data-testid="run-trigger" onChange={(event) => choose(event.target.value)}>
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
                onSelect: () => show(each, fields, 'form'),
              }))}
            >
              Recent inputs
            </MenuButton>
          ) : null}
          <Button
            kind="bare"
            icon="pin"
            aria-pressed={pinnedNow}
            why={input === undefined ? 'Invalid JSON' : null}
            data-testid="run-pin"
            title="Keep this input at the top of Recent inputs in this browser"
            onClick={() => (togglePin(draft ?? '', input ?? {}), setPinned(pinned + 1))}
          >
            {pinnedNow ? 'Pinned' : 'Pin input'}
          </Button>
        </div>
        {tab === 'form' ? (
          <SchemaForm key={trigger} fields={fields} typed={typed} onChange={setTyped} errors={problems} sent={tried} />
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
              onChange={(event) => setText(event.target.value)}
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
                <span>Invalid JSON: {read.why}</span>
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

const startTyped = (schema: JsonSchema): Typed => typedOf(fieldsOf(schema), startValues(schema), printJson)
