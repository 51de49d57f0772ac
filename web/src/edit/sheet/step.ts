// Run step: the block alone, as a durable run of the draft. Its events are folded here, beside the run that is shown.

import { createStore } from 'zustand/vanilla'
import { announce } from '../../a11y'
import type { Json } from '../../api/schemas'
import type { Document } from '../../api/types'
import { api, ApiError } from '../../net/api'
import { follow, type Feed } from '../../net/events'
import { isEnded, keyOf, type NodeState } from '../../run'
import { docStore, flush } from '../../state/doc'
import { Timeline } from '../../state/keyframes'
import { runStore } from '../../state/live'
import type { Given } from './inputs'

export interface StepRun {
  block: string
  run: string
  /** The block as it was when it ran: an answer to older settings is marked. */
  settings: string
  node: NodeState | undefined
  text: string
  ended: boolean
  error: string | null
}

/** Newest last. `starting`: a request is under way. */
export const stepStore = createStore<{
  runs: readonly StepRun[]
  starting: boolean
  refused: { message: string; hint: string } | null
}>(() => ({ runs: [], starting: false, refused: null }))

const RUNS_MAX = 20
let feeds: Feed[] = []

export function forgetSteps(): void {
  for (const feed of feeds) feed.close()
  feeds = []
  stepStore.setState({ runs: [], starting: false, refused: null })
}

export const settingsOf = (doc: Document, id: string): string =>
  JSON.stringify([doc.blocks[id]?.type, doc.blocks[id]?.params, doc.blocks[id]?.policy])

export async function runStep(block: string, given: Given, input: Json | undefined): Promise<void> {
  if (stepStore.getState().starting) return
  stepStore.setState({ starting: true, refused: null })
  try {
    await flush()
    const { id, doc, rev, saving, error } = docStore.getState()
    if (id === null) throw new Error('No workflow is open.')
    if (saving !== 'saved') throw new Error(error ?? 'Not run because the workflow could not be saved.')
    const blocks = { ...given.blocks, ...(await large(given)) }
    const { run } = await api.runDraft(id, input ?? {}, {
      rev,
      step: { block, given: blocks, variables: given.variables },
    })
    const step: StepRun = {
      block,
      run,
      settings: settingsOf(doc, block),
      node: undefined,
      text: '',
      ended: false,
      error: null,
    }
    stepStore.setState(({ runs }) => ({ runs: [...runs, step].slice(-RUNS_MAX) }))
    announce('Step started')
    watch(run, block)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    stepStore.setState({ refused: { message, hint: (error instanceof ApiError && error.hint) || '' } })
  } finally {
    stepStore.setState({ starting: false })
  }
}

/** Outputs that the log has only the beginning of. */
async function large(given: Given): Promise<Record<string, Json>> {
  const run = runStore.getState().id
  if (run === null) return {}
  const found = await Promise.all(
    Object.entries(given.large).map(async ([block, node]) => {
      const detail = await api.node(run, node.key, { seq: node.lastSeq })
      return [block, (detail.output ?? null) as Json] as const
    }),
  )
  return Object.fromEntries(found)
}

function watch(run: string, block: string): void {
  const timeline = new Timeline()
  const change = (by: (step: StepRun) => Partial<StepRun>): void =>
    stepStore.setState(({ runs }) => ({
      runs: runs.map((each) => (each.run === run ? { ...each, ...by(each) } : each)),
    }))
  const feed = follow(run, 0, {
    events: (events) => {
      timeline.append(events)
      const { head } = timeline
      const ended = isEnded(head.status)
      if (ended) announce(head.status === 'succeeded' ? 'Step succeeded' : 'Step failed')
      change(() => ({ node: head.nodes.get(keyOf(block, '')), ended, error: head.error?.message ?? null }))
    },
    delta: (_, text) => change((each) => ({ text: each.text + text })),
    status: () => undefined,
  })
  feeds.push(feed)
}
