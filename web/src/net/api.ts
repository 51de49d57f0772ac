// The server, as functions. Every refusal is an `ApiError` that carries the problem document; a lost connection is an
// `ApiError` with status 0. Nothing is retried here.

import type {
  BlockSpec, Diagnostic, Document, Draft, DraftSaved, DraftSummary, EnvName, EventPage, Example, Json, NodeDetail, Problem, RunAccepted,
  RerunPreview, RunPage, RunStatus, RunView, SavedWorkflow, Validation, WaitView, Why, WorkflowSummary, WorkflowVersion,
} from './types'

/** `status` 0: the server could not be reached. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly diagnostics: Diagnostic[]
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail || problem.title)
    this.name = 'ApiError'
    this.status = problem.status
    this.code = problem.code
    this.hint = problem.hint ?? ''
    this.diagnostics = problem.diagnostics ?? []
    this.problem = problem
  }
}

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
  /** The same key starts the same run. */
  idempotencyKey?: string
}

export interface RunQuery {
  workflow?: string
  draft?: string
  status?: RunStatus
  before?: string
  limit?: number
}

const enc = encodeURIComponent
/** Outputs over this many bytes are cut in events; the log of a large run must not fill the tab. */
export const OUTPUT_BYTES_MAX = 64 * 1024

export const api = {
  // blocks and documents
  blocks: async (): Promise<BlockSpec[]> => (await get<{ blocks: BlockSpec[] }>('/api/blocks')).blocks,
  validate: (document: Document, trigger?: string) => post<Validation>('/api/validate', { document, trigger }),
  examples: async (): Promise<Example[]> => (await get<{ examples: Example[] }>('/api/examples')).examples,
  env: async (): Promise<EnvName[]> => (await get<{ env: EnvName[] }>('/api/env')).env,

  // workflows: stored versions
  workflows: async (): Promise<WorkflowSummary[]> => (await get<{ workflows: WorkflowSummary[] }>('/api/workflows')).workflows,
  workflow: (name: string, version?: number) => get<WorkflowVersion>(`/api/workflows/${enc(name)}${query({ version })}`),
  saveVersion: (document: Document, name?: string) => post<SavedWorkflow>('/api/workflows', { document, name }),
  lastInputs: async (name: string): Promise<Json[]> =>
    (await get<{ inputs: Json[] }>(`/api/workflows/${enc(name)}/inputs`)).inputs,

  // drafts: what is being edited
  drafts: async (): Promise<DraftSummary[]> => (await get<{ drafts: DraftSummary[] }>('/api/drafts')).drafts,
  draft: (id: string) => get<Draft>(`/api/drafts/${enc(id)}`),
  createDraft: (document: Document, name?: string, baseVersion?: number | null) =>
    post<Draft>('/api/drafts', { document, name, base_version: baseVersion }),
  /** Raises DraftConflict when somebody saved in between. */
  saveDraft: async (id: string, rev: number, document: Document, name: string): Promise<DraftSaved> => {
    try {
      return await send<DraftSaved>('PUT', `/api/drafts/${enc(id)}`, { document, name }, { 'If-Match': `"${rev}"` })
    } catch (error) {
      if (error instanceof ApiError && (error.status === 409)) {
        const theirs = (error.problem.current as Draft | undefined) ?? (await api.draft(id))
        throw new DraftConflict(error.problem, theirs)
      }
      throw error
    }
  },
  /** Run a draft as it is stored. With `rev` only at that revision: DraftConflict is not raised, but ApiError 409. */
  runDraft: (id: string, input: Json, options: RunOptions & { rev?: number } = {}) =>
    start(`/api/drafts/${enc(id)}/run`, { input }, options, options.rev === undefined ? {} : { 'If-Match': `"${options.rev}"` }),
  /** Inputs of the last runs of a draft, newest first. */
  draftInputs: async (id: string): Promise<Json[]> => (await get<{ inputs: Json[] }>(`/api/drafts/${enc(id)}/inputs`)).inputs,
  /** Store a draft, at this revision, as the next version of its workflow. Raises ApiError 422 with diagnostics, or 409. */
  saveDraftVersion: (id: string, rev: number, name?: string) =>
    send<SavedWorkflow>('POST', `/api/drafts/${enc(id)}/versions`, { name }, { 'If-Match': `"${rev}"` }),
  deleteDraft: (id: string) => send<unknown>('DELETE', `/api/drafts/${enc(id)}`),

  // runs
  runs: (where: RunQuery = {}) => get<RunPage>(`/api/runs${query(where)}`),
  run: (id: string) => get<RunView>(`/api/runs/${enc(id)}`),
  /** Events behind `after`, at most `limit` (10,000). */
  events: (id: string, after = 0, limit = 2000, signal?: AbortSignal) =>
    get<EventPage>(`/api/runs/${enc(id)}/events${query({ after, limit, preview: OUTPUT_BYTES_MAX })}`, signal),
  /** The document a run was made from; null when the server has it no more. */
  runDocument: async (run: RunView): Promise<Document | null> => {
    try {
      return (await get<{ document: Document }>(`/api/runs/${enc(run.id)}/document`)).document
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null
      throw error
    }
  },
  /** A node as it stood after `seq`; values over `preview` bytes are cut. */
  node: (id: string, key: string, where: { seq?: number; attempt?: number; preview?: number } = {}, signal?: AbortSignal) =>
    get<NodeDetail>(`/api/runs/${enc(id)}/nodes/${enc(key)}${query(where)}`, signal),
  /** Where the bare JSON of an input or output can be downloaded. */
  nodeFile: (id: string, key: string, only: 'input' | 'output', where: { seq?: number; attempt?: number } = {}): string =>
    `/api/runs/${enc(id)}/nodes/${enc(key)}${query({ ...where, only })}`,
  why: async (id: string, node?: string): Promise<Why[]> =>
    (await get<{ why: Why[] }>(`/api/runs/${enc(id)}/why${query({ node })}`)).why,
  startRun: (workflow: string, input: Json, options: RunOptions = {}) =>
    start(`/api/workflows/${enc(workflow)}/runs`, { input, version: options.version }, options),
  /** Run a document as it is, stored or not. */
  startDocument: (document: Document, input: Json, options: RunOptions = {}) => start('/api/runs', { document, input }, options),
  /** Without `from` everything runs again; what was done before that block is taken over. */
  rerun: (id: string, from?: string, input?: Json) => post<RunAccepted>(`/api/runs/${enc(id)}/rerun`, { from, input }),
  rerunPreview: (id: string, from: string) => get<RerunPreview>(`/api/runs/${enc(id)}/rerun${query({ from })}`),
  cancelRun: (id: string, reason = '') => post<{ cancelled: boolean; status: RunStatus }>(`/api/runs/${enc(id)}/cancel`, { reason }),
  signal: (id: string, name: string, payload: Json, correlation?: string) =>
    post<{ seq: number; new: boolean }>(`/api/runs/${enc(id)}/signals/${enc(name)}`, { payload, correlation }),

  // waits
  waits: async (status: WaitView['status'] | 'all' = 'pending', run?: string): Promise<WaitView[]> =>
    (await get<{ waits: WaitView[] }>(`/api/waits${query({ status, run })}`)).waits,
  /** `link` is the wait's resume link, absolute or not. Raises ApiError 422 (fields) or 409 (somebody was first). */
  answer: (link: string, action: string | null, fields: Record<string, Json>, by?: string) =>
    post<WaitView>(`/api/resume/${enc(tokenOf(link))}`, { action, fields, by }),

  login: (token: string) => post<{ signed_in: boolean }>('/login', { token }),
}

export function tokenOf(link: string): string {
  return link.split('?')[0]!.split('/').filter(Boolean).at(-1) ?? ''
}

function start(path: string, body: Record<string, unknown>, options: RunOptions, more: Record<string, string> = {}): Promise<RunAccepted> {
  const headers: Record<string, string> = { ...(options.idempotencyKey ? { 'Idempotency-Key': options.idempotencyKey } : {}), ...more }
  return send<RunAccepted>('POST', path, { ...body, trigger: options.trigger, stop_after: options.stopAfter }, headers)
}

const get = <T>(path: string, signal?: AbortSignal) => send<T>('GET', path, undefined, {}, signal)
const post = <T>(path: string, body: unknown) => send<T>('POST', path, body)

async function send<T>(
  method: string, path: string, body?: unknown, headers: Record<string, string> = {}, signal?: AbortSignal,
): Promise<T> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(plainProblem(0, 'unreachable', 'The server can not be reached.'))
  }
  if (!response.ok) throw new ApiError(await problemOf(response))
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem
  } catch {
    return plainProblem(response.status, `http_${response.status}`, `The server answered ${response.status}.`)
  }
}

function plainProblem(status: number, code: string, detail: string): Problem {
  return { type: `urn:weft:problem:${code}`, title: detail, status, code, detail }
}

function query(params: { [name: string]: string | number | undefined | null } | RunQuery): string {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return given.length ? '?' + new URLSearchParams(given.map(([k, v]) => [k, String(v)])).toString() : ''
}
