// What the editor and the package in client/ share about requests: refusals, addresses, keys and pauses.

import type { Diagnostic, Problem } from './schemas.js'

/** The body of a refusal. Other members go with `code`. */
export type Refusal = Problem & { [other: string]: unknown }

/** A refusal of the server; with status 0 there was no answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  /** Where in the body the fault is (RFC 6901); empty if it is not in one place. */
  readonly pointer: string
  readonly diagnostics: Diagnostic[]
  readonly problem: Refusal

  constructor(problem: Refusal) {
    super(problem.detail || problem.title)
    this.name = 'ApiError'
    this.status = problem.status
    this.code = problem.code
    this.hint = problem.hint ?? ''
    this.pointer = problem.pointer ?? ''
    this.diagnostics = problem.diagnostics ?? []
    this.problem = problem
  }
}

export function plainProblem(status: number, code: string, detail: string): Refusal {
  return { type: `urn:weft:problem:${code}`, title: detail, status, code, detail }
}

export const enc = encodeURIComponent

/** `?a=1&b=x` of what is present; empty without any. */
export function query(params: object): string {
  const present = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return present.length ? `?${new URLSearchParams(present.map(([k, v]) => [k, String(v)])).toString()}` : ''
}

/** The token of a resume link, absolute or not; a token is itself. */
export function tokenOf(link: string): string {
  return decodeURIComponent(link.split(/[?#]/)[0]!.split('/').filter(Boolean).at(-1) ?? '')
}

/** An Idempotency-Key that no other request has. */
export function freshKey(): string {
  // Pages without TLS have no randomUUID.
  return (
    crypto.randomUUID?.() ??
    Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  )
}

export const BACKOFF_MIN_MS = 500
export const BACKOFF_MAX_MS = 8000

/** Pause before try number `tries` (1, 2, ...): doubling, with up to a quarter more by `random` in [0, 1). */
export function backoffMs(tries: number, random: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (tries - 1)) * (1 + random / 4)
}
