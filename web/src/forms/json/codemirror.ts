// The code editor: CodeMirror 6, loaded when it is first needed. It lives in a shadow root, where its styles are adopted sheets;
// in the page it would add <style> elements, which the content security policy forbids.

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  selectedCompletion,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from '@codemirror/language'
import { lintGutter, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { Annotation, Compartment, EditorState, Prec, RangeSetBuilder, type Extension } from '@codemirror/state'
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
  tooltips,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

export type CodeMark = Diagnostic
/** Spans of references: `ok` false is underlined. */
export type RefSpans = (text: string) => { start: number; end: number; ok: boolean }[]
/** What can be written at the caret. */
export type Complete = (
  text: string,
  caret: number,
) => {
  from: number
  to: number
  options: { label: string; insert: string; detail: string; group: string; more: boolean }[]
} | null

export type ProgramLanguage = 'javascript' | 'python' | 'sql'

export interface CodeOptions {
  host: HTMLElement
  text: string
  language: 'json' | ProgramLanguage
  label: string
  readonly: boolean
  placeholder?: string
  refs?: RefSpans
  complete?: Complete
  /** Line numbers, folding, lint marks in the gutter. */
  gutters?: boolean
  onChange: (text: string) => void
  /** The caret was moved by the person. */
  onCaret?: (offset: number) => void
  /** Escape, with nothing of its own to close. */
  onEscape?: () => void
}

export interface CodeEditor {
  /** Replace the text; only what differs changes, so caret and folds stay. */
  setText(text: string): void
  setReadonly(readonly: boolean): void
  /** The language of a program; not for JSON. */
  setLanguage(language: ProgramLanguage): void
  setMarks(marks: CodeMark[]): void
  /** Look at references again: names may have changed. */
  refresh(): void
  reveal(from: number, to: number): void
  focus(): void
  hasFocus(): boolean
  destroy(): void
}

const fromOutside = Annotation.define<boolean>()

export function createEditor(options: CodeOptions): CodeEditor {
  const root = options.host.shadowRoot ?? options.host.attachShadow({ mode: 'open' })
  const box = document.createElement('div')
  root.replaceChildren(box)
  box.style.height = '100%'
  const writable = new Compartment()
  const spoken = new Compartment()
  const searched = new Compartment()
  const redraw = Annotation.define<boolean>()
  const state = EditorState.create({
    doc: options.text,
    extensions: [extensionsOf(options, writable, spoken, redraw), searched.of([])],
  })
  const view = new EditorView({ state, parent: box, root })
  // The JSON view does not pay for the grammar of programs, nor one language for the other.
  let language = options.language
  const speak = (next: ProgramLanguage): void => {
    language = next
    void grammarOf(next).then((grammar) => {
      if (language === next) view.dispatch({ effects: spoken.reconfigure(grammar) })
    })
  }
  if (options.language !== 'json') speak(options.language)
  // Search is not needed when the text appears.
  void import('@codemirror/search').then(({ highlightSelectionMatches, search, searchKeymap }) =>
    view.dispatch({
      effects: searched.reconfigure([
        search({ top: true }),
        highlightSelectionMatches(),
        Prec.high(keymap.of(searchKeymap)),
      ]),
    }),
  )
  return {
    setText(text) {
      const change = changeBetween(view.state.doc.toString(), text)
      if (change) view.dispatch({ changes: change, annotations: fromOutside.of(true) })
    },
    setReadonly: (readonly) => view.dispatch({ effects: writable.reconfigure(locked(readonly)) }),
    setLanguage(next) {
      if (next !== language) speak(next)
    },
    setMarks: (marks) =>
      view.dispatch(
        setDiagnostics(
          view.state,
          marks.map((mark) => ({ ...mark, from: clamp(mark.from), to: clamp(mark.to) })),
        ),
      ),
    refresh: () => view.dispatch({ annotations: redraw.of(true) }),
    reveal(from, to) {
      view.dispatch({
        selection: { anchor: clamp(from) },
        effects: EditorView.scrollIntoView(clamp(from), { y: 'start', yMargin: 40 }),
        annotations: fromOutside.of(true),
      })
      void to
    },
    focus: () => view.focus(),
    hasFocus: () => view.hasFocus,
    destroy: () => view.destroy(),
  }
  function clamp(offset: number): number {
    return Math.max(0, Math.min(offset, view.state.doc.length))
  }
}

async function grammarOf(language: ProgramLanguage): Promise<Extension> {
  if (language === 'javascript') return (await import('@codemirror/lang-javascript')).javascript()
  if (language === 'sql') return (await import('./sql')).sql
  return [(await import('@codemirror/lang-python')).python(), Prec.high(indentUnit.of('    '))]
}

/** The one replacement that turns a text into another; null when they are equal. */
export function changeBetween(before: string, after: string): { from: number; to: number; insert: string } | null {
  if (before === after) return null
  let from = 0
  const most = Math.min(before.length, after.length)
  while (from < most && before[from] === after[from]) from++
  let same = 0
  while (same < most - from && before[before.length - 1 - same] === after[after.length - 1 - same]) same++
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) }
}

function extensionsOf(
  options: CodeOptions,
  writable: Compartment,
  spoken: Compartment,
  redraw: ReturnType<typeof Annotation.define<boolean>>,
): Extension[] {
  const { language, refs, complete, gutters } = options
  const list: Extension[] = [
    history(),
    drawSelection(),
    typeOverSelection,
    indentUnit.of('  '),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    spoken.of(language === 'json' ? json() : []),
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    tooltips({ position: 'fixed' }),
    EditorView.contentAttributes.of({ 'aria-label': options.label, tabindex: '0' }),
    writable.of(locked(options.readonly)),
    EditorView.updateListener.of((update) => {
      const outside = update.transactions.some((each) => each.annotation(fromOutside))
      if (update.docChanged && !outside) options.onChange(update.state.doc.toString())
      if (update.selectionSet && !outside && update.view.hasFocus) options.onCaret?.(update.state.selection.main.head)
    }),
  ]
  if (gutters)
    list.push(
      lineNumbers(),
      foldGutter({ markerDOM: foldMark }),
      lintGutter(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
    )
  else list.push(EditorView.lineWrapping)
  if (options.placeholder) list.push(placeholder(options.placeholder))
  if (refs) list.push(refPlugin(refs, redraw))
  list.push(
    autocompletion({
      override: complete ? [(context) => completionsOf(context, complete)] : [],
      icons: false,
      tooltipClass: () => 'refs',
    }),
  )
  list.push(Prec.highest(keymap.of([{ key: 'ArrowRight', run: goInto }])))
  list.push(
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...defaultKeymap,
      ...(gutters ? [] : [indentWithTab]),
      { key: 'Escape', run: () => (options.onEscape?.(), !!options.onEscape) },
    ]),
  )
  return list
}

/** A browser that replaces styled text puts its style on what is typed, as a `style` attribute, which the content security policy
 * reports as an error. So the text is replaced here, in the document. */
const typeOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection
    const text = event.data
    if (
      event.inputType !== 'insertText' ||
      !text ||
      event.isComposing ||
      ranges.length > 1 ||
      main.empty ||
      view.state.readOnly
    )
      return false
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true })
    event.preventDefault()
    if (!view.state.facet(EditorView.inputHandler).some((handler) => handler(view, main.from, main.to, text, insert)))
      view.dispatch(insert())
    return true
  },
})

function locked(readonly: boolean): Extension {
  return [EditorState.readOnly.of(readonly), EditorView.editable.of(!readonly)]
}

/** Sections are compared by identity: one object for each name. */
function sectionsBy(): (name: string, rank: number) => { name: string; rank: number } {
  const made = new Map<string, { name: string; rank: number }>()
  return (name, rank) => made.get(name) ?? (made.set(name, { name, rank }), made.get(name)!)
}

function completionsOf(context: CompletionContext, complete: Complete): CompletionResult | null {
  const found = complete(context.state.doc.toString(), context.pos)
  if (!found?.options.length) return null
  const sectionOf = sectionsBy()
  return {
    from: found.from,
    filter: false,
    options: found.options.map(
      (option, i): Offered => ({
        label: option.label,
        detail: option.detail + (option.more ? ' …' : ''),
        section: sectionOf(option.group, i),
        boost: -Math.min(i, 99),
        apply: (view) => put(view, found.from, found.to, option.insert),
        into: option.more
          ? (view) => (put(view, found.from, found.to, `${option.insert.slice(0, -1)}.`), void startCompletion(view))
          : undefined,
      }),
    ),
  }
}

/** `into` goes to the fields of what is offered. */
type Offered = Completion & { into: ((view: EditorView) => void) | undefined }

function put(view: EditorView, from: number, to: number, insert: string): void {
  view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length } })
}

function goInto(view: EditorView): boolean {
  const offered = selectedCompletion(view.state) as Offered | null
  if (!offered?.into) return false
  offered.into(view)
  return true
}

function refPlugin(refs: RefSpans, redraw: ReturnType<typeof Annotation.define<boolean>>): Extension {
  const good = Decoration.mark({ class: 'cm-ref' })
  const wrong = Decoration.mark({ class: 'cm-ref cm-ref-wrong' })
  const build = (view: EditorView): DecorationSet => {
    const set = new RangeSetBuilder<Decoration>()
    for (const { start, end, ok } of refs(view.state.doc.toString())) set.add(start, end, ok ? good : wrong)
    return set.finish()
  }
  return ViewPlugin.fromClass(
    class {
      decorations: DecorationSet
      constructor(view: EditorView) {
        this.decorations = build(view)
      }
      update(update: ViewUpdate): void {
        if (update.docChanged || update.transactions.some((each) => each.annotation(redraw)))
          this.decorations = build(update.view)
      }
    },
    { decorations: (plugin) => plugin.decorations },
  )
}

function foldMark(open: boolean): HTMLElement {
  const mark = document.createElement('span')
  mark.className = open ? 'cm-fold' : 'cm-fold cm-fold-shut'
  mark.title = open ? 'Fold' : 'Unfold'
  return mark
}

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.variableName), tags.variableName], color: 'var(--ink)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.integer, tags.float], color: 'var(--run)' },
  { tag: [tags.bool, tags.null, tags.keyword, tags.operatorKeyword, tags.self], color: 'var(--wait)' },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: 'var(--ink-3)', fontStyle: 'italic' },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.operator], color: 'var(--ink-2)' },
])

const THEME = EditorView.theme({
  '&': { height: '100%', color: 'var(--ink)', backgroundColor: 'var(--field)', fontSize: '12px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': {
    fontFamily: 'var(--font-mono)',
    lineHeight: '18px',
    fontVariantLigatures: 'none',
    overflow: 'auto',
  },
  '.cm-content': { padding: '6px 0', caretColor: 'var(--ink)' },
  '.cm-line': { padding: '0 8px' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)', borderLeftWidth: '1.5px' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--thread-tint)',
  },
  '.cm-selectionMatch': { backgroundColor: 'var(--wait-tint)' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--line) 35%, transparent)' },
  '.cm-gutters': { backgroundColor: 'var(--paper)', color: 'var(--ink-3)', border: 'none' },
  '.cm-activeLineGutter': { backgroundColor: 'transparent', color: 'var(--ink)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'transparent',
    boxShadow: 'inset 0 -1px 0 var(--ink-2)',
  },
  '.cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket': {
    backgroundColor: 'transparent',
    color: 'var(--err)',
  },
  '.cm-placeholder': { color: 'var(--ink-3)' },
  '.cm-ref': { backgroundColor: 'var(--thread-tint)', color: 'var(--thread)', borderRadius: '3px' },
  '.cm-ref *': { color: 'inherit' },
  '.cm-ref-wrong': {
    backgroundColor: 'var(--err-tint)',
    color: 'var(--err)',
    textDecoration: 'underline wavy var(--err)',
  },
  '.cm-foldPlaceholder': {
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--line)',
    color: 'var(--ink-2)',
    padding: '0 4px',
  },
  '.cm-fold': {
    display: 'inline-block',
    width: '7px',
    height: '7px',
    margin: '0 3px 2px',
    borderRight: '1.5px solid var(--ink-3)',
    borderBottom: '1.5px solid var(--ink-3)',
    transform: 'rotate(45deg) scale(.8)',
    cursor: 'pointer',
  },
  '.cm-fold-shut': { transform: 'rotate(-45deg) scale(.8)' },
  '.cm-panels': {
    backgroundColor: 'var(--panel)',
    color: 'var(--ink)',
    borderColor: 'var(--line)',
    fontFamily: 'var(--font-ui)',
  },
  '.cm-panel.cm-search': { padding: '6px 8px' },
  '.cm-textfield': {
    backgroundColor: 'var(--paper)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    color: 'var(--ink)',
  },
  '.cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    color: 'var(--ink)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--ink)',
    border: '1px solid var(--line)',
    borderRadius: '8px',
    boxShadow: '0 2px 0 var(--hard-shadow)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: 'var(--font-mono)',
    fontSize: '12px',
    maxHeight: '260px',
    padding: '4px',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--paper)',
    color: 'var(--ink)',
    boxShadow: 'inset 0 0 0 1px var(--thread)',
    borderRadius: '6px',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px' },
  '.cm-completionDetail': { color: 'var(--ink-3)', fontStyle: 'normal', marginLeft: '12px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > completion-section': {
    borderBottom: 'none',
    padding: '6px 8px 2px',
    color: 'var(--ink-3)',
    fontSize: '11px',
    opacity: '1',
  },
  '.cm-diagnostic': {
    padding: '6px 10px',
    fontFamily: 'var(--font-ui)',
    fontSize: '13px',
    borderLeft: '5px solid var(--err)',
  },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--err)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--wait)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--err)',
    textUnderlineOffset: '3px',
  },
  '.cm-lintRange-warning': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--wait)',
    textUnderlineOffset: '3px',
  },
  '.cm-lintPoint:after': { borderBottomColor: 'var(--err)' },
  '.cm-lint-marker': { width: '8px', height: '8px', margin: '5px 2px', borderRadius: '2px' },
  '.cm-lint-marker-error': { content: 'none', backgroundColor: 'var(--err)' },
  '.cm-lint-marker-warning': { content: 'none', backgroundColor: 'var(--wait)', borderRadius: '50%' },
  '.cm-gutter-lint': { width: '12px' },
})
