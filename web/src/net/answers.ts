// How each answer of the server is read: checked once, on arrival (api/checks.ts). Documents are repaired instead (a draft may hold anything), see repair.ts.

import { maybe, list, Mismatch, number, record, shape, text, type Check } from '../api/check'
import * as is from '../api/checks'
import type {
  CardPage,
  Delta,
  Document,
  Draft,
  Problem,
  RunView,
  WaitView,
  WireEvent,
  WorkflowVersion,
} from '../api/types'
import { repair } from './repair'

/** What an answer holds, or Mismatch. */
export type Read<T> = (value: unknown) => T

export function answer<T extends object>(check: Check<T>): Read<T> {
  return (value) => {
    check(value, '')
    return value as T
  }
}

export const anything = (value: unknown): unknown => value

/** A run, with requests of its waits that can be shown. */
export function run(value: unknown): RunView {
  is.RunDetail(value, '')
  const view = value as RunView
  return {
    ...view,
    waits: view.waits.map(withRequest),
    child_waits: view.child_waits.map(withRequest),
  }
}

export function waits(value: unknown): WaitView[] {
  is.WaitPage(value, '')
  return (value as { waits: WaitView[] }).waits.map(withRequest)
}

export function wait(value: unknown): WaitView {
  is.Wait(value, '')
  return withRequest(value as WaitView)
}

/** Workflows as cards, with documents that can be drawn. */
export function cards(value: unknown): CardPage {
  is.CardPage(value, '')
  const page = value as CardPage
  return { ...page, cards: page.cards.map((card) => ({ ...card, document: repair(card.document).document })) }
}

/** A document of a stored workflow, as it can be drawn. */
export function version(value: unknown): WorkflowVersion {
  is.WorkflowVersion(value, '')
  const raw = value as WorkflowVersion
  return { ...raw, document: repair(raw.document).document }
}

/** A document, whatever shape it is stored in, as it can be drawn. */
export function document(value: unknown): Document {
  shape<{ document: object }>({ document: record })(value, '')
  return repair((value as { document: unknown }).document).document
}

/** A draft with a document that can be drawn. `repaired` is there when it is not what is stored. */
export function draft(value: unknown): Draft {
  is.DraftView(value, '')
  const raw = value as Draft
  const repaired = repair(raw.document)
  return repaired.faults.length ? { ...raw, document: repaired.document, repaired } : raw
}

const problem = shape<Pick<Problem, 'title' | 'status' | 'code' | 'diagnostics'>>({
  title: text,
  status: number,
  code: text,
  diagnostics: maybe(list(is.Diagnostic)),
})
const delta = shape<Delta>({ key: text, text: text })

/** A problem document, or null when it is none: a proxy may have answered. */
export function asProblem(value: unknown): Problem | null {
  return passes(problem, value) ? (value as Problem) : null
}

/** An event of the stream, or null: then the gap it leaves is fetched as a page. */
export function asEvent(value: unknown): WireEvent | null {
  return passes(is.EventOnWire, value) ? (value as WireEvent) : null
}

export function asDelta(value: unknown): Delta | null {
  return passes(delta, value) ? (value as Delta) : null
}

/** What a wait asks is an object for every kind that has a page of its own; others may hold anything. */
function withRequest(wait: WaitView): WaitView {
  return passes(record, wait.request) ? wait : { ...wait, request: {} }
}

function passes(check: Check<never>, value: unknown): boolean {
  try {
    check(value, '')
    return true
  } catch (error) {
    if (error instanceof Mismatch) return false
    throw error
  }
}
