// The effects of publishing, before it is done: what starts, what changes, and what stops. Pure.

import type { ScheduleView, WebhookView } from '../../api/schemas'
import type { Block, Document } from '../../api/types'
import { diffDocuments, isSame, type DocumentDiff, type FieldChange } from '../../document/diff'
import { isTrigger, nameOf, type Specs } from '../../document/document'
import { cronWords } from '../../forms/triggers/cron'

/** The version that is active under the name now. */
export interface Active {
  version: number
  /** The time at which it became the active one. */
  sinceMs: number
  document: Document
  webhooks: readonly WebhookView[]
  schedules: readonly ScheduleView[]
  openRuns: number
}

export interface Effect {
  id: string
  /** "Form Intake" */
  what: string
  /** "people with this link see that it ended" */
  note: string
  /** The one value that changes. */
  field?: FieldChange
}

export interface Impact {
  starts: readonly Effect[]
  changes: DocumentDiff | null
  stops: readonly Effect[]
}

/** `base`: the version of this workflow that the draft began from or was last published as; null for none. */
export function impactOf(doc: Document, active: Active | null, base: number | null, specs: Specs): Impact {
  const before = active?.document ?? null
  const changes = before && diffDocuments(before, withoutPins(doc))
  const replaced = active && changes && base !== active.version && !isSame(changes) ? [replacement(active, base)] : []
  return { starts: starting(doc, before, specs), changes, stops: [...replaced, ...stopping(doc, active, specs)] }
}

/** As it is published. */
export function withoutPins(doc: Document): Document {
  const bare = Object.entries(doc.blocks).map(([id, block]) => [id, { ...block, pin: undefined }] as const)
  return { ...doc, blocks: Object.fromEntries(bare) }
}

function replacement(active: Active, base: number | null): Effect {
  return {
    id: 'version',
    what: `Version ${active.version}`,
    note: `${base === null ? 'this draft was not made from it' : `this draft was made from version ${base}`}; to keep it live, choose another name`,
  }
}

const KINDS: Readonly<Record<string, string>> = {
  webhook: 'Webhook',
  form_trigger: 'Form',
  chat_trigger: 'Chat',
  schedule: 'Schedule',
}

function called(doc: Document, id: string): string {
  const kind = KINDS[doc.blocks[id]!.type]
  const name = nameOf(doc, id)
  return !kind || name.toLowerCase().includes(kind.toLowerCase()) ? name : `${kind} ${name}`
}

function isOn(block: Block | undefined, specs: Specs): block is Block {
  return !!block && isTrigger(block, specs) && block.enabled !== false
}

function starting(doc: Document, before: Document | null, specs: Specs): Effect[] {
  const effects: Effect[] = []
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (!isOn(block, specs)) continue
    const old = before?.blocks[id]
    const stays = isOn(old, specs) && old.type === block.type
    if (stays && block.type === 'start') continue
    effects.push({ id, what: called(doc, id), note: startNote(block, stays) })
  }
  return effects
}

function startNote(block: Block, stays: boolean): string {
  if (block.type === 'start') return 'by hand, by API and from other workflows'
  if (block.params?.enabled === false) return 'disabled until it is switched on in Settings'
  if (block.type === 'schedule')
    return [whenOf(block), stays ? 'its next run uses the new version' : 'new schedule'].filter(Boolean).join(', ')
  if (block.type.startsWith('event.'))
    return stays ? 'its next event uses the new version' : 'starts with what is new from now on'
  if (block.type === 'webhook') return stays ? 'the same URL, the next call uses the new version' : 'gets its URL now'
  return stays ? 'the same link, now with the new version' : 'gets its public link now'
}

/** "at 09:00 on weekdays (UTC)"; empty where there are no simple words for it. */
function whenOf({ params }: Block): string {
  const words = typeof params?.cron === 'string' ? cronWords(params.cron) : null
  const tz = typeof params?.tz === 'string' && params.tz ? params.tz : 'UTC'
  return words ? `${words.charAt(0).toLowerCase()}${words.slice(1)} (${tz})` : ''
}

function stopping(doc: Document, active: Active | null, specs: Specs): Effect[] {
  if (!active) return []
  const effects: Effect[] = []
  const gone = new Set<string>()
  for (const [id, block] of Object.entries(active.document.blocks)) {
    if (!isOn(block, specs)) continue
    const now = doc.blocks[id]
    if (isOn(now, specs) && now.type === block.type) continue
    gone.add(id)
    effects.push({ id, what: called(active.document, id), note: stopNote(block) })
  }
  // Made beside the document, they name a block that is no longer there.
  const others: readonly (WebhookView | ScheduleView)[] = [...active.webhooks, ...active.schedules]
  for (const row of others)
    if (row.origin !== 'document' && row.version === null && row.trigger !== null && gone.has(row.trigger))
      effects.push({
        id: `api:${row.id}`,
        what: `${'cron' in row ? 'Schedule' : 'Webhook'} ${row.id}`,
        note: `it starts at ${nameOf(active.document, row.trigger)}`,
      })
  return effects
}

const STOPS: Readonly<Record<string, string>> = {
  webhook: 'calls to its URL are refused',
  form_trigger: 'people with this link see that it is unknown',
  chat_trigger: 'people with this link see that it is unknown',
  schedule: 'it starts no more runs',
}

function stopNote(block: Block): string {
  const note =
    STOPS[block.type.startsWith('event.') ? 'schedule' : block.type] ??
    'no runs by hand, by API or from other workflows'
  return [block.type === 'schedule' && whenOf(block), note].filter(Boolean).join(', ')
}
