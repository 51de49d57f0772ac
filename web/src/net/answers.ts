// What the pages rely on in each answer of the server: checked once, on arrival. Documents are repaired instead (a draft
// may hold anything), see repair.ts.

import { any, flag, list, maybe, Mismatch, number, record, shape, text, type Check } from './check'
import { repair } from './repair'
import type {
  ChildView,
  DeliveryView,
  Diagnostic,
  DraftSaved,
  DraftVersion,
  EnvName,
  FireView,
  Json,
  LastRun,
  MigrateAnswer,
  NodeView,
  RerunPreview,
  RetryAccepted,
  RunAccepted,
  RunPage,
  ScheduleDetail,
  ScheduleView,
  WebhookDetail,
  WebhookView,
  RunSummary,
  Validation,
  VersionPage,
  Why,
  WorkflowHead,
} from '../api/schemas'
import type {
  BlockSpec,
  Delta,
  Document,
  Draft,
  DraftSummary,
  EventPage,
  Example,
  NodeDetail,
  Problem,
  RunStatus,
  RunView,
  WaitView,
  WireEvent,
  WorkflowVersion,
} from '../api/types'

/** What an answer holds, or Mismatch. */
export type Read<T> = (value: unknown) => T

const diagnostics = list(shape<Diagnostic>({ code: text, severity: text, pointer: text, message: text }))

const blockSpec = shape<BlockSpec>({
  type: text,
  title: text,
  description: text,
  category: text,
  params: record,
  handles: list(text),
  container: maybe(text),
  trigger: flag,
})
export const blocks = answer<{ blocks: BlockSpec[] }>({ blocks: list(blockSpec) })
export const validation = answer<Validation>({ valid: flag, diagnostics })
export const examples = answer<{ examples: Example[] }>({
  examples: list(shape<Example>({ name: text, title: text, description: text, document: record })),
})
export const env = answer<{ env: EnvName[] }>({
  env: list(shape<EnvName>({ name: text, secret: flag, set: flag, used_by: list(record) })),
})

const workflow = { name: text, version: number, newest: number, hash: text, created_at_ms: number }
const lastRun = maybe(
  shape<LastRun>({
    id: text,
    version: maybe(number),
    status: text,
    created_at_ms: number,
    finished_at_ms: maybe(number),
  }),
)
export const workflows = answer<{ workflows: WorkflowHead[] }>({
  workflows: list(shape<WorkflowHead>({ ...workflow, last_run: lastRun })),
})
const storedVersion = shape<WorkflowVersion>({ ...workflow, active: number, document: any })
export const versions = answer<VersionPage>({
  name: text,
  active: number,
  versions: list(shape<VersionPage['versions'][number]>({ version: number, hash: text, created_at_ms: number })),
  next: maybe(number),
})
export const saved = answer<DraftVersion>({
  name: text,
  version: number,
  created: flag,
  activated: flag,
  replaced: maybe(number),
  rev: number,
  diagnostics,
})
export const inputs = answer<{ inputs: Json[] }>({ inputs: list(any) })

const draftHead = { id: text, name: text, rev: number, updated_at_ms: number, base_version: maybe(number) }
export const drafts = answer<{ drafts: DraftSummary[] }>({
  drafts: list(shape<DraftSummary>({ ...draftHead, last_run: lastRun })),
})
const draftView = shape<Draft>({ ...draftHead, document: any, diagnostics: maybe(diagnostics) })
export const draftSaved = answer<DraftSaved>({ rev: number, updated_at_ms: number, diagnostics })

const failure = maybe(shape<{ code: string; message: string }>({ code: text, message: text }))
const runHead = {
  id: text,
  workflow: text,
  version: maybe(number),
  status: text,
  seq: number,
  created_at_ms: number,
  started_at_ms: maybe(number),
  finished_at_ms: maybe(number),
  error: failure,
}
export const runs = answer<RunPage>({
  runs: list(shape<RunSummary>(runHead)),
  next: maybe(text),
  counts: maybe(record),
  capped: list(text),
})
const child = shape<ChildView>({ run: text, workflow: text, status: text, key: text, attempt: number })
const nodeView = shape<NodeView>({ key: text, node: text, block: text, path: text, status: text, attempt: number })
const waitView = shape<WaitView>({
  run: text,
  workflow: text,
  id: text,
  key: text,
  block: text,
  label: text,
  kind: text,
  status: text,
  actions: list(text),
  opened_at_ms: number,
  expires_at_ms: maybe(number),
  schema: maybe(record),
})
const waitList = shape<{ waits: WaitView[] }>({ waits: list(waitView) })
const runView = shape<RunView>({
  ...runHead,
  variables: maybe(record),
  nodes: maybe(list(nodeView)),
  waits: maybe(list(waitView)),
  children: maybe(list(child)),
  child_waits: maybe(list(waitView)),
  by: maybe(text),
  parent: maybe(shape<{ run: string; key: string }>({ run: text, key: text })),
})
export const accepted = answer<RunAccepted>({ run: text, status: text })
const wireEvent = shape<WireEvent>({
  seq: number,
  at_ms: number,
  type: text,
  path: text,
  attempt: number,
  node: maybe(text),
  block: maybe(text),
  key: maybe(text),
  data: record,
})
export const events = answer<EventPage>({ events: list(wireEvent), count: number, next: maybe(number) })
export const node = answer<NodeDetail>({ key: text, status: text, attempt: number, attempts: list(record) })
export const why = answer<{ why: Why[] }>({ why: list(shape<Why>({ key: text, state: text, reasons: list(text) })) })
export const rerun = answer<RerunPreview>({
  run: text,
  from: text,
  reused: list(text),
  again: list(text),
  skipped: list(text),
})
export const cancelled = answer<{ cancelled: boolean; status: RunStatus }>({ cancelled: flag, status: text })

export const retried = answer<RetryAccepted>({ run: text, how: text, block: text })
export const migrated = answer<MigrateAnswer>({ run: text, version: number, moved: flag })
export const server = answer<{ version: string; signed_in: boolean; read_only: boolean }>({
  version: text,
  signed_in: flag,
  read_only: flag,
})

const schedule = {
  id: text,
  workflow: text,
  cron: text,
  tz: text,
  enabled: flag,
  origin: text,
  next_run_at_ms: maybe(number),
  last_run_at_ms: maybe(number),
  last_run_id: maybe(text),
  error: maybe(text),
  trigger: maybe(text),
  upcoming_ms: list(number),
}
export const scheduleDetail = answer<ScheduleDetail>({
  ...schedule,
  fires: list(shape<FireView>({ due_ms: number, at_ms: number, outcome: text, run: maybe(text), error: maybe(text) })),
})
export const schedules = answer<{ schedules: ScheduleView[] }>({ schedules: list(shape<ScheduleView>(schedule)) })
const webhook = {
  id: text,
  kind: text,
  url: text,
  workflow: text,
  auth: text,
  enabled: flag,
  origin: text,
  secret_env: maybe(text),
  trigger: maybe(text),
  last_run_at_ms: maybe(number),
  last_run_id: maybe(text),
  problem: maybe(text),
}
export const webhookDetail = answer<WebhookDetail>({
  ...webhook,
  secret: maybe(text),
  deliveries: list(shape<DeliveryView>({ at_ms: number, outcome: text, run: maybe(text) })),
})
export const webhooks = answer<{ webhooks: WebhookView[] }>({ webhooks: list(shape<WebhookView>(webhook)) })
export const rotated = answer<{ secret: string }>({ secret: text })
export const cron = answer<{ upcoming_ms: number[] }>({ upcoming_ms: list(number) })

const delta = shape<Delta>({ key: text, text: text })
const problem = shape<Pick<Problem, 'title' | 'status' | 'code' | 'diagnostics'>>({
  title: text,
  status: number,
  code: text,
  diagnostics: maybe(diagnostics),
})

/** A run; the server leaves out what is empty. */
export function run(value: unknown): RunView {
  runView(value, '')
  const view = value as RunView
  return {
    ...view,
    variables: view.variables ?? {},
    nodes: view.nodes ?? [],
    waits: (view.waits ?? []).map(withRequest),
    child_waits: (view.child_waits ?? []).map(withRequest),
  }
}

export function waits(value: unknown): WaitView[] {
  waitList(value, '')
  return (value as { waits: WaitView[] }).waits.map(withRequest)
}

export function wait(value: unknown): WaitView {
  waitView(value, '')
  return withRequest(value as WaitView)
}

/** A document of a stored workflow, as it can be drawn. */
export function version(value: unknown): WorkflowVersion {
  storedVersion(value, '')
  const raw = value as WorkflowVersion
  return { ...raw, document: repair(raw.document).document }
}

/** A document, whatever shape it is stored in, as it can be drawn. */
export function document(value: unknown): Document {
  shape<{ document: object }>({ document: record })(value, '')
  return repair((value as { document: unknown }).document).document
}

/** Nothing is asked of the answer. */
export const signedOut = answer<{ at_provider?: string | null }>({ at_provider: maybe(text) })
export const anything = (value: unknown): unknown => value

/** A problem document, or null when it is none. */
export function asProblem(value: unknown): Problem | null {
  return passes(problem, value) ? (value as Problem) : null
}

/** An event of the stream, or null: then the gap it leaves is fetched as a page. */
export function asEvent(value: unknown): WireEvent | null {
  return passes(wireEvent, value) ? (value as WireEvent) : null
}

export function asDelta(value: unknown): Delta | null {
  return passes(delta, value) ? (value as Delta) : null
}

/** A draft with a document that can be drawn. `repaired` is there when it is not what is stored. */
export function draft(value: unknown): Draft {
  draftView(value, '')
  const raw = value as Draft
  const repaired = repair(raw.document)
  return repaired.faults.length ? { ...raw, document: repaired.document, repaired } : raw
}

/** What a wait asks is an object for every kind that has a page of its own; others may hold anything. */
function withRequest(wait: WaitView): WaitView {
  return passes(record, wait.request) ? wait : { ...wait, request: {} }
}

export function answer<T extends object>(checks: { [K in keyof T]?: Check<T[K]> }): Read<T> {
  const check = shape<T>(checks)
  return (value) => {
    check(value, '')
    return value as T
  }
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
