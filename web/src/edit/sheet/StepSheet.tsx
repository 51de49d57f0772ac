// One block in full: the values before it, its settings, its output. Runs it alone, pins what it returned, compares.

import { useMemo, useRef, useState, type DragEvent, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { useShallow } from 'zustand/react/shallow'
import { announce } from '../../a11y'
import type { Json } from '../../api/schemas'
import { run as runWorkflow } from '../../actions/start'
import { isTrigger } from '../../document/document'
import { nodeAt } from '../../run'
import { docStore, type Saving } from '../../state/doc'
import { runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { readJson } from '../../forms/fields/JsonText'
import { useFieldScope } from '../../forms/fields/scope'
import { printJson } from '../../forms/json/print'
import { ConfigTab } from '../inspector/ConfigTab'
import type { Mode } from '../inspector/useScope'
import { Columns } from './Columns'
import { effectOf } from './effect'
import { Foot } from './Foot'
import { Frame } from './Frame'
import { Head, turnIteration } from './Head'
import { InputTree } from './InputTree'
import { givenTo, valuesOf, type Given } from './inputs'
import { DRAGGED, fieldOf, insertInto } from './insert'
import { Output, useWhole } from './Output'
import { setPin } from './PinBox'
import { runStep, settingsOf, stepStore } from './step'
import { takesOf } from './takes'
import '../inspector/inspector.css'

const COLUMNS = { input: 'Input', settings: 'Settings', output: 'Output' }

export function StepSheet({ id, mode, onTalk }: { id: string; mode: Mode; onTalk?: () => void }): ReactElement {
  const { doc, specs, run, readonly } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const block = doc.blocks[id]!
  const spec = specs.get(block.type)
  const node = useMemo(() => nodeAt(view, doc, id, iter), [view, doc, id, iter])
  const value = useWhole(node)
  const steps = useStore(
    stepStore,
    useShallow((state) => state.runs.filter((each) => each.block === id)),
  )
  const takes = useMemo(() => takesOf(node, value, steps), [node, value, steps])
  const [chosen, setChosen] = useState<string | null>(null)
  const shown = takes.find((take) => take.id === chosen) ?? takes.at(-1)
  const [edited, setEdited] = useState<string | null>(null)
  const values = useMemo(() => givenTo(doc, id, specs, run), [doc, id, specs, run])
  const mayRun = useWhyNoStep(id, mode, edited)
  const canPin = mode === 'edit' && !readonly && pinnable(block.type, spec)
  const effect = mode === 'edit' && mayRun !== NEVER ? effectOf(doc, id, spec, valuesOf(doc, specs, run)) : null
  const field = useRef<HTMLElement | null>(null)
  const start = (): void => {
    if (mayRun !== null) return
    setChosen(null)
    const { blocks, input } =
      edited === null ? { blocks: values.blocks, input: values.input } : readGiven(edited, doc, values)
    const now: Given = edited === null ? values : { ...values, blocks, large: {} }
    void runStep(id, now, input)
  }
  const onKey = (event: KeyboardEvent): boolean => {
    if (event.key === '[' || event.key === ']') return turnIteration(id, event.key === '[' ? -1 : 1)
    if (event.key.toLowerCase() === 'r' && mode === 'edit') return start(), true
    return false
  }
  const pin = (): void => {
    if (shown?.value === undefined) return
    const route = shown.node?.route ?? 'out'
    setPin(id, { output: shown.value, ...(route === 'out' || shown.step ? {} : { route }) })
    announce('Output pinned')
  }
  const stale = shown?.step && shown.step.settings !== settingsOf(doc, id)
  return (
    <Frame label={`Step ${block.name?.trim() || id}`} testId="step-sheet" onKey={onKey}>
      <Head id={id} node={node}>
        {onTalk ? <Button onClick={onTalk}>This talk</Button> : null}
        {canPin ? (
          <Button
            kind="bare"
            icon="pin"
            data-testid="pin-output"
            why={shown?.value === undefined ? 'There is no output to pin yet.' : null}
            onClick={pin}
          >
            Pin output
          </Button>
        ) : null}
        {mode === 'edit' && mayRun !== NEVER ? (
          <Button kind="primary" icon="play" keys="R" data-testid="run-step" why={mayRun} onClick={start}>
            Run step
          </Button>
        ) : null}
      </Head>
      {effect ? (
        <p className="wsheet__effect" data-testid="step-effect">
          <Icon name="warning" size={14} />
          <span>
            Run step {effect.verb} <b>{effect.what}</b>
            {effect.rest}, with the input at the left.
          </span>
          <span className="wsheet__gap" />
          {block.pin ? (
            <button type="button" className="linklike" onClick={() => void runWorkflow()}>
              Use the pinned output instead
            </button>
          ) : null}
        </p>
      ) : null}
      <Refused />
      <Columns titles={COLUMNS}>
        {(column) =>
          column === 'input' ? (
            <Input
              id={id}
              values={values}
              edited={edited}
              onEdit={setEdited}
              onInsert={(reference) => announceInserted(insertInto(field.current, reference))}
            />
          ) : column === 'settings' ? (
            <Settings id={id} onField={(target) => (field.current = target)} />
          ) : (
            <>
              {stale ? <p className="wsheet__help wsheet__stale">The settings were changed since this step.</p> : null}
              <Output id={id} takes={takes} shown={shown} onShow={setChosen} />
            </>
          )
        }
      </Columns>
      <Foot id={id} />
    </Frame>
  )
}

/** The mark of a step that is never offered, unlike one that is only not possible now. */
const NEVER = 'never'

function useWhyNoStep(id: string, mode: Mode, edited: string | null): string | null {
  const { doc, specs } = useFieldScope()
  const mayNot = useReadOnly()
  const { starting, last } = useStore(
    stepStore,
    useShallow((state) => ({ starting: state.starting, last: state.runs.at(-1) })),
  )
  const block = doc.blocks[id]!
  const spec = specs.get(block.type)
  if (mode === 'run' || !spec || isTrigger(block, specs) || spec.container) return NEVER
  if (block.type === 'break' || block.type === 'continue_as_new' || spec.category === 'annotation') return NEVER
  if (mayNot) return mayNot
  if (starting) return 'Starting'
  if (last && last.block === id && !last.ended) return 'The step is running.'
  const read = edited === null ? null : readJson(edited)
  return read && !read.ok ? `The edited input is no JSON: ${read.why}` : null
}

const pinnable = (
  type: string,
  spec: { trigger: boolean; container: unknown; category: string } | undefined,
): boolean =>
  !!spec &&
  !spec.trigger &&
  !spec.container &&
  spec.category !== 'annotation' &&
  !['break', 'continue_as_new', 'response', 'variables'].includes(type)

/** Edited input is JSON of outputs by block id; `input` is that of the run. */
function readGiven(text: string, doc: { blocks: object }, values: Given): Pick<Given, 'blocks' | 'input'> {
  const read = readJson(text)
  const all = (read.ok && read.value && typeof read.value === 'object' ? read.value : {}) as Record<string, Json>
  const { input, ...rest } = all
  const isBlock = 'input' in doc.blocks
  const blocks = isBlock ? all : rest
  return { blocks: { ...values.blocks, ...blocks }, input: isBlock ? values.input : (input ?? values.input) }
}

function announceInserted(done: boolean): void {
  announce(done ? 'Inserted' : 'Click into a field first: the value goes where the caret is.')
}

function Refused(): ReactElement | null {
  const refused = useStore(stepStore, (state) => state.refused)
  if (!refused) return null
  return (
    <p className="wsheet__refused" role="alert">
      <Icon name="failed" size={14} /> {refused.message} {refused.hint}
    </p>
  )
}

function Input({
  id,
  values,
  edited,
  onEdit,
  onInsert,
}: {
  id: string
  values: Given
  edited: string | null
  onEdit: (text: string | null) => void
  onInsert: (reference: string) => void
}): ReactElement {
  const { readonly } = useFieldScope()
  const start = (): void => {
    const { blocks, input } = values
    onEdit(printJson({ ...blocks, ...(input === undefined ? {} : { input }) }))
  }
  return (
    <>
      <div className="wsheet__bar">
        <h3>Input</h3>
        <span className="wsheet__gap" />
        {readonly ? null : (
          <span className="wsheet__seg" role="group" aria-label="Input of Run step">
            <button type="button" aria-pressed={edited === null} onClick={() => onEdit(null)}>
              As recorded
            </button>
            <button
              type="button"
              aria-pressed={edited !== null}
              data-testid="input-edited"
              onClick={() => edited === null && start()}
            >
              Edited
            </button>
          </span>
        )}
      </div>
      <div className="wsheet__scroll">
        {edited === null ? (
          <>
            {values.missing.length && !readonly ? (
              <p className="wsheet__help">
                No value yet: {values.missing.join(', ')}. Run the workflow up to here, or edit the input.
              </p>
            ) : null}
            <InputTree id={id} onInsert={onInsert} />
          </>
        ) : (
          <>
            <p className="wsheet__help">What the block reads, by the id of the block that returned it.</p>
            <textarea
              className="field mono wsheet__json"
              aria-label="Edited input, as JSON"
              data-testid="input-text"
              value={edited}
              spellCheck={false}
              onChange={(event) => onEdit(event.target.value)}
            />
          </>
        )}
      </div>
    </>
  )
}

const SAVING: Record<Saving, string> = {
  saved: 'Saved',
  dirty: 'Saving',
  saving: 'Saving',
  offline: 'Not saved yet',
  conflict: 'Not saved',
  refused: 'Not saved',
}

function Settings({ id, onField }: { id: string; onField: (field: HTMLElement) => void }): ReactElement {
  const saving = useStore(docStore, (state) => (state.id === null ? null : state.saving))
  const target = useRef<Element | null>(null)
  const mark = (next: Element | null, name = ''): void => {
    target.current?.removeAttribute('data-drop')
    target.current = next
    next?.setAttribute('data-drop', name)
  }
  const over = (event: DragEvent): void => {
    if (!event.dataTransfer.types.includes(DRAGGED)) return
    const found = fieldOf(event.target)
    mark(found?.closest('.fld') ?? null, 'Drop to use it here')
    if (!found) return
    event.preventDefault()
    event.dataTransfer.dropEffect = 'copy'
  }
  const drop = (event: DragEvent): void => {
    const reference = event.dataTransfer.getData(DRAGGED)
    mark(null)
    const found = fieldOf(event.target)
    if (!reference || !found) return
    event.preventDefault()
    if (insertInto(found, reference)) onField(found)
  }
  return (
    <>
      <div className="wsheet__bar">
        <h3>Settings</h3>
        <span className="wsheet__gap" />
        {saving === null ? null : <span className="quiet">{SAVING[saving]}</span>}
      </div>
      <div
        className="wsheet__scroll wsheet__form"
        onFocus={(event) => {
          const found = fieldOf(event.target)
          if (found) onField(found)
        }}
        onDragOver={over}
        onDragLeave={() => mark(null)}
        onDrop={drop}
      >
        <ConfigTab id={id} />
      </div>
    </>
  )
}
