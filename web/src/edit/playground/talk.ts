// The trials of a draft: one talk, or a list of events, kept in this browser over a reload. Pure but for the storage.

import type { DraftAddress, Json } from '../../api/schemas'

export interface Turn {
  run: string
  /** The message of a chat, or the input. */
  input: Json
  trigger: string
}

export interface Talk {
  /** Agents remember by it; a new talk has another one. */
  conversation: string
  turns: readonly Turn[]
  /** The test address of a webhook, or the place in a source that is polled, until it ends. */
  listening?: Listening
}

export interface Listening {
  trigger: string
  since: number
  until_ms: number
  address?: DraftAddress
  /** What asks for the next event. */
  after?: string
  /** There were events before. */
  newest?: boolean
}

const TURNS_MAX = 50

export function newTalk(): Talk {
  const random = crypto.getRandomValues(new Uint32Array(2))
  return { conversation: `try-${[...random].map((each) => each.toString(36)).join('')}`, turns: [] }
}

export function readTalk(draft: string): Talk {
  try {
    const talk = JSON.parse(localStorage.getItem(keyOf(draft)) ?? 'null') as Talk | null
    if (typeof talk?.conversation === 'string' && Array.isArray(talk.turns)) return talk
  } catch {
    // Written by something else: a new talk takes its place.
  }
  return newTalk()
}

export function keepTalk(draft: string, talk: Talk): void {
  try {
    localStorage.setItem(keyOf(draft), JSON.stringify({ ...talk, turns: talk.turns.slice(-TURNS_MAX) }))
  } catch {
    // Storage may be off; then the talk is gone after a reload.
  }
}

const keyOf = (draft: string): string => `weft-talk-${draft}`
