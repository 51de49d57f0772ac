// The document as text, both ways: text that is a workflow becomes the document (one step, what is equal stays the same), text
// that is not leaves the document alone; changes made elsewhere are put into the text where they belong.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import type { Diagnostic, Json } from '../../api/schemas'
import type { Document } from '../../api/types'
import { escapePointer } from '../../refs/parse'
import { dispatch, docStore, storedDocument } from '../../state/doc'
import { select, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { copyText } from '../../ui/copy'
import { placedFindings } from '../fields/scope'
import type { CodeEditor, CodeMark } from './codemirror'
import { locate, placeOf, type Place, type TextError } from './locate'
import { printJson } from './print'
import { readDocument } from './readDocument'
import './json.css'

const PARSE_AFTER_MS = 250
const CHECK_AFTER_MS = 400

export default function JsonView(): ReactElement {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<CodeEditor | null>(null)
  const [ready, setReady] = useState(false)
  const [errors, setErrors] = useState<readonly TextError[]>([])
  const [moved, setMoved] = useState(false)
  const doc = useStore(docStore, (state) => state.doc)
  const readonly = useStore(docStore, (state) => state.readonly)
  const diagnostics = useStore(docStore, (state) => state.diagnostics)
  const selected = useStore(uiStore, (state) =>
    state.selection.blocks.length === 1 ? state.selection.blocks[0]! : null,
  )
  const [session] = useState(() => new Session())

  useEffect(() => {
    let gone = false
    void import('./codemirror').then(({ createEditor }) => {
      if (gone || !host.current) return
      setErrors(session.begin(docStore.getState().doc, storedDocument()))
      editor.current = createEditor({
        host: host.current,
        text: session.text,
        language: 'json',
        label: 'Workflow as JSON',
        readonly: docStore.getState().readonly,
        gutters: true,
        onChange: (text) =>
          session.typed(text, (found) => {
            setErrors(found)
            if (!found.length) setMoved(false)
          }),
        onCaret: (offset) => {
          const block = blockAt(session.places(), offset)
          const now = uiStore.getState().selection.blocks
          if (block === null || !docStore.getState().doc.blocks[block] || (now.length === 1 && now[0] === block)) return
          session.ownSelection = block
          select({ blocks: [block] })
        },
      })
      setReady(true)
    })
    return () => {
      gone = true
      session.end()
      editor.current?.destroy()
      editor.current = null
    }
  }, [session])

  // The document changed elsewhere: the text follows, unless it holds something that is not finished.
  useEffect(() => {
    if (!ready || session.knows(doc)) return
    if (session.isBroken) return setMoved(true)
    editor.current?.setText(session.follow(doc))
  }, [doc, ready, session])

  useEffect(() => void editor.current?.setReadonly(readonly), [readonly, ready])

  useEffect(() => {
    const marks: CodeMark[] = errors.length
      ? errors.map((each) => ({
          from: each.from,
          to: Math.max(each.to, each.from + 1),
          severity: 'error',
          message: each.message,
        }))
      : placedFindings(diagnostics).flatMap((each) => marksOf(each, session))
    editor.current?.setMarks(marks)
  }, [errors, diagnostics, ready, doc, session])

  useEffect(() => {
    if (!ready || selected === null || session.ownSelection === selected) return
    session.ownSelection = null
    const place = session.places().get(`/blocks/${escapePointer(selected)}`)
    if (place && !editor.current?.hasFocus()) editor.current?.reveal((place.key ?? place).from, place.to)
  }, [selected, ready, session])

  const takeCanvas = (): void => {
    editor.current?.setText(session.follow(docStore.getState().doc))
    setErrors([])
    setMoved(false)
  }
  const copy = (): Promise<void> => copyText(session.text, 'Copied workflow JSON')

  return (
    <section className="jsonview" aria-label="JSON" data-testid="json-view">
      <header className="jsonview__head">
        <h2>JSON</h2>
        <span className="label">
          {errors.length ? 'Not saved' : readonly ? 'Read only' : 'Changes apply as you type'}
        </span>
        <Button kind="bare" icon="copy" iconOnly onClick={() => void copy()}>
          Copy all
        </Button>
        <Button kind="bare" icon="close" iconOnly onClick={() => uiStore.setState({ view: 'canvas' })}>
          Close the JSON view
        </Button>
      </header>
      {errors.length ? (
        <div className="jsonview__banner" role="status" data-testid="json-banner">
          <Icon name="warning" />
          <span>
            The text has {errors.length === 1 ? 'an error' : `${errors.length} errors`}: {errors[0]!.message} The canvas
            shows the last valid version.
          </span>
          <Button
            kind="bare"
            onClick={() => (editor.current?.reveal(errors[0]!.from, errors[0]!.to), editor.current?.focus())}
          >
            Go to error
          </Button>
          <Button kind="bare" onClick={takeCanvas}>
            Discard changes
          </Button>
        </div>
      ) : null}
      {moved && errors.length ? (
        <p className="jsonview__banner" data-tone="quiet">
          The canvas has changed. Your text will replace those changes.
        </p>
      ) : null}
      <div ref={host} className="jsonview__host" data-testid="json-editor" />
      {ready ? null : <p className="label jsonview__wait">Loading the editor</p>}
    </section>
  )
}

/** The text and what it stands for. */
class Session {
  text = ''
  isBroken = false
  /** Selected because the caret went there: the text need not scroll. */
  ownSelection: string | null = null
  private shown: Document | null = null
  private located: { text: string; places: ReadonlyMap<string, Place> } | null = null
  private parse: ReturnType<typeof setTimeout> | null = null
  private check: ReturnType<typeof setTimeout> | null = null

  /** `stored` is `doc`, or what it was made of by leaving out what cannot be drawn: then that is shown, with its errors. */
  begin(doc: Document, stored: unknown): readonly TextError[] {
    this.follow(doc)
    if (stored === doc) return []
    this.text = printJson(stored as Json)
    const read = readDocument(this.text)
    this.located = { text: this.text, places: read.located.places }
    this.isBroken = read.doc === null
    return read.errors
  }

  end(): void {
    if (this.parse !== null) clearTimeout(this.parse)
    if (this.check !== null) clearTimeout(this.check)
  }

  knows(doc: Document): boolean {
    return (
      doc === this.shown ||
      (!this.isBroken && this.shown !== null && JSON.stringify(doc) === JSON.stringify(this.shown))
    )
  }

  follow(doc: Document): string {
    if (this.parse !== null) clearTimeout(this.parse)
    this.parse = null
    this.shown = doc
    this.isBroken = false
    this.text = printJson(doc as unknown as Json)
    return this.text
  }

  typed(text: string, report: (errors: readonly TextError[]) => void): void {
    this.text = text
    if (this.parse !== null) clearTimeout(this.parse)
    this.parse = setTimeout(() => {
      this.parse = null
      const read = readDocument(text)
      this.located = { text, places: read.located.places }
      this.isBroken = read.doc === null
      report(read.errors)
      if (!read.doc) return
      dispatch({ type: 'replaceDoc', doc: read.doc }, 'json')
      this.shown = docStore.getState().doc
      if (this.check !== null) clearTimeout(this.check)
      this.check = setTimeout(() => void checkNow(this.shown), CHECK_AFTER_MS)
    }, PARSE_AFTER_MS)
  }

  places(): ReadonlyMap<string, Place> {
    if (this.located?.text !== this.text) this.located = { text: this.text, places: locate(this.text).places }
    return this.located.places
  }
}

async function checkNow(doc: Document | null): Promise<void> {
  if (!doc) return
  try {
    const { diagnostics } = await api.validate(doc)
    if (docStore.getState().doc === doc) docStore.setState({ diagnostics })
  } catch {
    // The next save brings the findings.
  }
}

function marksOf(finding: Diagnostic, session: Session): CodeMark[] {
  const place = placeOf(session.places(), finding.pointer)
  if (!place) return []
  // Of what goes over several lines only the name, or the first character.
  const long = session.text.slice(place.from, place.to).includes('\n')
  const at = long ? (place.key ?? { from: place.from, to: place.from + 1 }) : place
  const mark: CodeMark = {
    from: at.from,
    to: at.to,
    severity: finding.severity,
    message: finding.hint ? `${finding.message} ${finding.hint}` : finding.message,
    source: finding.code,
  }
  return [mark]
}

/** The block whose text holds an offset. */
function blockAt(places: ReadonlyMap<string, Place>, offset: number): string | null {
  for (const [pointer, place] of places) {
    const match = /^\/blocks\/([^/]+)$/.exec(pointer)
    const from = place.key?.from ?? place.from
    if (match && from <= offset && offset <= place.to) return match[1]!.replaceAll('~1', '/').replaceAll('~0', '~')
  }
  return null
}
