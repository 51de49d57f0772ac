// The server, as functions: drafts, versions, runs, waits. What starts runs by itself is in triggers.ts. All raise ApiError.

import * as is from '../api/checks'
import * as read from './answers'
import { answer, anything, type Read } from './answers'
import { ApiError, enc, get, post, query, send } from './http'
import { once } from './once'
import type { DraftSaved, EnvName, Json, RunAccepted, Why, WorkflowHead } from '../api/schemas'
import type { BlockSpec, Document, Draft, DraftSummary, Example, Problem, RunStatus, WaitView } from '../api/types'

/** A save met a newer revision. `theirs` is what the server has now. */
export class DraftConflict extends ApiError {
  readonly theirs: Draft

  constructor(problem: Problem, theirs: Draft) {
    super(problem)
    this.name = 'DraftConflict'
    this.theirs = theirs
  }
}

export interface RunOptions {
  trigger?: string
  version?: number
  stopAfter?: string
}

export interface CardQuery {
  folder?: string | undefined
  /** In the name, or the name or type of a block. */
  text?: string | undefined
  order: 'run' | 'changed' | 'name'
  /** The time at which today began. */
  since: number
  after?: number
  limit: number
}

/** A block of a draft that runs alone, with these outputs of what it reads, by block id. */
export interface StepOfDraft {
  block: string
  given: Record<string, Json>
  variables?: Record<string, Json>
}

export interface RunQuery {
  workflow?: string
  draft?: string
  /** Only runs that this run started. */
  parent?: string
  status?: RunStatus
  /** Who started them, such as `user:ada`; their idempotency key. */
  by?: string
  key?: string
  not_status?: RunStatus
  not_workflow?: string
  not_by?: string
  not_text?: string
  /** Created then: Unix ms. */
  since?: number
  until?: number
  /** In the id, the idempotency key or the error. */
  text?: string
  before?: string
  limit?: number
  /** 0: runs are not counted. */
  counts?: 0
}

/** Outputs over this many bytes are cut in events; the log of a large run must not fill the tab. */
export const OUTPUT_BYTES_MAX = 64 * 1024

export const api = {
  // blocks and documents
  blocks: async (): Promise<BlockSpec[]> => (await get('/api/blocks', answer(is.BlockList))).blocks as BlockSpec[],
  validate: (document: Document, trigger?: string) =>
    post('/api/validate', { document, trigger }, answer(is.Validation)),
  examples: async (): Promise<Example[]> =>
    (await get('/api/examples', answer(is.Examples))).examples as unknown as Example[],
  server: () => get('/api/version', answer(is.Version)),
  env: async (): Promise<EnvName[]> => (await get('/api/env', answer(is.EnvNames))).env,

  // workflows: stored versions
  workflows: async (): Promise<WorkflowHead[]> => (await get('/api/workflows', answer(is.WorkflowPage))).workflows,
  /** Workflows as the front page shows them. */
  cards: (where: CardQuery) => get(`/api/cards${query({ ...where })}`, read.cards),
  /** `folder` empty: in none. */
  putInFolder: (name: string, folder: string) =>
    send('PUT', `/api/workflows/${enc(name)}/folder`, anything, { folder }),
  /** Another text in place of the name, which stays; '' for the name. */
  renameWorkflow: (name: string, title: string) =>
    send('PUT', `/api/workflows/${enc(name)}/title`, anything, { title }),
  deleteWorkflow: (name: string) => send('DELETE', `/api/workflows/${enc(name)}`, anything, {}),
  workflow: (name: string, version?: number) => get(`/api/workflows/${enc(name)}${query({ version })}`, read.version),
  /** Versions of a workflow, newest first. */
  versions: (name: string, limit: number) =>
    get(`/api/workflows/${enc(name)}/versions${query({ limit })}`, answer(is.VersionPage)),
  /** The states of each block in each of the last runs. */
  loom: (name: string, since?: number) => get(`/api/workflows/${enc(name)}/loom${query({ since })}`, answer(is.Loom)),
  lastInputs: async (name: string): Promise<Json[]> =>
    (await get(`/api/workflows/${enc(name)}/inputs`, answer(is.InputList))).inputs,

  // drafts: what is being edited
  drafts: async (): Promise<DraftSummary[]> => (await get('/api/drafts', answer(is.DraftPage))).drafts,
  draft: (id: string) => get(`/api/drafts/${enc(id)}`, read.draft),
  putDraftInFolder: (id: string, folder: string) => send('PUT', `/api/drafts/${enc(id)}/folder`, anything, { folder }),
  /** Asked for twice at once (a button pressed twice), it is one draft. */
  createDraft: (document: unknown, name?: string, baseVersion?: number | null) => {
    const body = { document, name, base_version: baseVersion }
    return once(['/api/drafts', body], () => post('/api/drafts', body, read.draft))
  },
  /** Raises DraftConflict when the draft was saved elsewhere in between. */
  saveDraft: async (id: string, rev: number, document: Document, name: string): Promise<DraftSaved> => {
    try {
      return await send(
        'PUT',
        `/api/drafts/${enc(id)}`,
        answer(is.DraftSaved),
        { document, name },
        { 'If-Match': `"${rev}"` },
      )
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        const theirs = error.problem.current === undefined ? await api.draft(id) : read.draft(error.problem.current)
        throw new DraftConflict(error.problem, theirs)
      }
      throw error
    }
  },
  /** Run a draft as it is stored. With `rev` only at that revision: DraftConflict is not raised, but ApiError 409. */
  runDraft: (id: string, input: Json, options: RunOptions & { rev?: number; step?: StepOfDraft } = {}) =>
    start(
      `/api/drafts/${enc(id)}/run`,
      { input, step: options.step },
      options,
      options.rev === undefined ? {} : { 'If-Match': `"${options.rev}"` },
    ),
  /** An address of a webhook block that runs the draft, for some minutes. */
  listen: (id: string, trigger: string) => post(`/api/drafts/${enc(id)}/listen`, { trigger }, answer(is.DraftAddress)),
  /** Run the draft with the newest event of a block that polls, or with the next one `after` ('' begins). */
  pollDraft: (id: string, trigger: string, after?: string) =>
    post(`/api/drafts/${enc(id)}/poll`, { trigger, after }, answer(is.DraftEvent)),
  /** Inputs of the last runs of a draft, newest first. */
  draftInputs: async (id: string): Promise<Json[]> =>
    (await get(`/api/drafts/${enc(id)}/inputs`, answer(is.InputList))).inputs,
  /** Store a draft, at this revision, as the next version of its workflow. Raises ApiError 422 with diagnostics, or 409.
   *  `activateTriggers`: they start runs even if blocks were not imported. `replaces`: the version that is active, 0 for
   *  none: 409 would_replace if it is another one by then. */
  saveDraftVersion: (id: string, rev: number, name: string, activateTriggers: boolean, replaces: number) =>
    send(
      'POST',
      `/api/drafts/${enc(id)}/versions`,
      answer(is.DraftVersion),
      { name, activate_triggers: activateTriggers, replaces },
      { 'If-Match': `"${rev}"` },
    ),
  deleteDraft: (id: string) => send('DELETE', `/api/drafts/${enc(id)}`, anything),

  // runs
  runs: (where: RunQuery = {}) => get(`/api/runs${query(where)}`, answer(is.RunPage)),
  run: (id: string) => get(`/api/runs/${enc(id)}`, read.run),
  /** Events behind `after`, at most `limit` (10,000). */
  events: (id: string, after = 0, limit = 2000, signal?: AbortSignal) =>
    get(
      `/api/runs/${enc(id)}/events${query({ after, limit, preview: OUTPUT_BYTES_MAX })}`,
      answer(is.EventPage),
      signal,
    ),
  /** The differences between two runs; only times and ids may differ. */
  diff: (a: string, b: string) => get(`/api/runs/${enc(a)}/diff/${enc(b)}`, answer(is.RunDiff)),
  /** The document a run was made from; null when the server has it no more. */
  runDocument: async (run: string): Promise<Document | null> => {
    try {
      return await get(`/api/runs/${enc(run)}/document`, read.document)
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null
      throw error
    }
  },
  /** A node as it stood after `seq`; values over `preview` bytes are cut. */
  node: (
    id: string,
    key: string,
    where: { seq?: number; attempt?: number; preview?: number } = {},
    signal?: AbortSignal,
  ) => get(`/api/runs/${enc(id)}/nodes/${enc(key)}${query(where)}`, answer(is.NodeShown), signal),
  /** Where the bare JSON of an input or output can be downloaded. */
  nodeFile: (
    id: string,
    key: string,
    only: 'input' | 'output',
    where: { seq?: number; attempt?: number } = {},
  ): string => `/api/runs/${enc(id)}/nodes/${enc(key)}${query({ ...where, only })}`,
  why: async (id: string, node?: string): Promise<Why[]> =>
    (await get(`/api/runs/${enc(id)}/why${query({ node })}`, answer(is.RunWhy))).why,
  startRun: (workflow: string, input: Json, options: RunOptions = {}) =>
    start(`/api/workflows/${enc(workflow)}/runs`, { input, version: options.version }, options),
  /** Run a document as it is, stored or not. */
  startDocument: (document: Document, input: Json, options: RunOptions = {}) =>
    start('/api/runs', { document, input }, options),
  /** Runs a document once on this server, however often it is asked for under this key. */
  startOnce: (document: Document, input: Json, key: string) =>
    send('POST', '/api/runs', answer(is.RunAccepted), { document, input }, { 'Idempotency-Key': key }),
  /** The numbers of runs created in each part of a time, by status. */
  runTimes: (where: { since: number; until: number; parts: number; workflow?: string | undefined }) =>
    get(`/api/run-times${query(where)}`, answer(is.RunTimes)),
  /** Without `from` everything runs again; with it, results from before that block are reused. */
  rerun: (id: string, from?: string, input?: Json) =>
    make(`/api/runs/${enc(id)}/rerun`, { from, input }, answer(is.RunAccepted)),
  /** Each of at most 100 runs, again or continued with the active version; `preview` changes nothing. */
  rerunMany: (runs: readonly string[], version: 'active' | null, preview = false) => {
    const body = { runs, preview, ...(version ? { version } : {}) }
    return preview
      ? post('/api/runs/rerun', body, answer(is.RerunsAnswer))
      : make('/api/runs/rerun', body, answer(is.RerunsAnswer))
  },
  rerunPreview: (id: string, from: string) =>
    get(`/api/runs/${enc(id)}/rerun${query({ from })}`, answer(is.RerunPreview)),
  /** A preview of the run, continued with the draft or the active version. */
  continuation: (id: string, version: 'draft' | 'active') =>
    get(`/api/runs/${enc(id)}/continuation${query({ version })}`, answer(is.Continuation)),
  /** A new run that continues this one with the draft, or the active version: what is unchanged is not run again. */
  continueRun: (id: string, version: 'draft' | 'active') =>
    make(`/api/runs/${enc(id)}/rerun`, { version }, answer(is.RunAccepted)),
  /** Run one node again: the open run need not wait for its next attempt; of one that has ended a new run is made. */
  retryNode: (id: string, key: string) =>
    make(`/api/runs/${enc(id)}/nodes/${enc(key)}/retry`, {}, answer(is.RetryAccepted)),
  /** A new run that continues from event `seq`, with these outputs (by node key) in place of recorded ones. */
  fork: (id: string, seq: number, outputs: Record<string, Json> = {}) =>
    make(`/api/runs/${enc(id)}/fork`, { seq, outputs }, answer(is.RunAccepted)),
  /** What a fork takes over and may do again: at an event, or with another result of a step. */
  forkPreview: (id: string, at: { seq: number } | { node: string; step: number }) =>
    get(`/api/runs/${enc(id)}/fork${query({ ...at })}`, answer(is.ForkPreview)),
  /** A new run that continues inside a node with steps, such as an agent: finished calls are not made again. One of them has
   * another result (then the server knows the event), or the block other params from event `seq` on. */
  rewind: (
    id: string,
    change:
      | { steps: Record<string, Record<string, Json>>; params?: Record<string, Record<string, Json>> }
      | { seq: number; params: Record<string, Record<string, Json>> },
  ) => make(`/api/runs/${enc(id)}/fork`, { ...change }, answer(is.RunAccepted)),
  /** Move an open run to another version of its workflow. */
  migrate: (id: string, version: number) => post(`/api/runs/${enc(id)}/migrate`, { version }, answer(is.MigrateAnswer)),
  cancelRun: (id: string, reason = '') => post(`/api/runs/${enc(id)}/cancel`, { reason }, answer(is.Cancelled)),
  signal: (id: string, name: string, payload: Json, correlation?: string) =>
    make(`/api/runs/${enc(id)}/signals/${enc(name)}`, { payload, correlation }, anything),

  // waits
  waits: (status: WaitView['status'] | 'all' = 'pending', run?: string, limit?: number) =>
    get(`/api/waits${query({ status, run, limit, counts: 0 })}`, read.waits),
  /** Needs no link. Raises ApiError 422 (fields) or 409 (answered before). */
  answer: (wait: { run: string; id: string }, action: string | null, fields: Record<string, Json>, by?: string) =>
    post(`/api/runs/${enc(wait.run)}/waits/${enc(wait.id)}`, { action, fields, by }, read.wait),

  login: (token: string) => post('/login', { token }, anything),
  /** `at_provider`: where the browser signs out at the provider that signed it in. */
  logout: () => post('/logout', undefined, (value) => (value ?? {}) as { at_provider?: string | null }),
  endSessions: () => send('DELETE', '/api/sessions', anything),
}

function start(
  path: string,
  body: Record<string, unknown>,
  options: RunOptions,
  more: Record<string, string> = {},
): Promise<RunAccepted> {
  return make(path, { ...body, trigger: options.trigger, stop_after: options.stopAfter }, answer(is.RunAccepted), more)
}

/** A request that makes a run, or a signal, however often it is sent. */
function make<T>(path: string, body: unknown, read: Read<T>, headers: Record<string, string> = {}): Promise<T> {
  return once([path, body, headers], (key) => send('POST', path, read, body, { 'Idempotency-Key': key, ...headers }))
}

export { ApiError } from './http'
