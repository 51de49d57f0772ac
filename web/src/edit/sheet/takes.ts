// The outputs of a block: attempts of the node that is shown and steps, and with what each can be compared.

import { useMemo } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import type { ErrorInfo } from '../../api/types'
import { chainOf, kindOf } from '../../document/document'
import { api } from '../../net/api'
import { nodeAt, parsePath, pathFor, type NodeState } from '../../run'
import { docStore } from '../../state/doc'
import { runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { useData } from '../../ui/useData'
import { useFieldScope } from '../../forms/fields/scope'
import type { StepRun } from './step'

/** Something that has an output: an attempt of the node that is shown, or a step. */
export interface Take {
  id: string
  title: string
  node: NodeState | undefined
  error: ErrorInfo | null
  value: Json | undefined
  took: number | null
  step: StepRun | null
  ended: boolean
}

/** The attempts of the node, then the steps, oldest first. */
export function takesOf(node: NodeState | undefined, value: Json | undefined, steps: readonly StepRun[]): Take[] {
  const last = node?.attempts.at(-1)?.attempt
  const takes: Take[] = (node?.attempts ?? []).map((each) => ({
    id: `attempt ${each.attempt}`,
    title: String(each.attempt),
    node,
    error: each.attempt === last ? node!.error : each.error,
    value: each.attempt === last && !node!.error ? value : undefined,
    took: each.endedAt === null ? null : each.endedAt - each.startedAt,
    step: null,
    ended: each.endedAt !== null,
  }))
  for (const [nth, step] of steps.entries())
    takes.push({
      id: step.run,
      title: `Step ${nth + 1}`,
      node: step.node,
      error: step.node?.error ?? null,
      value: step.node?.error ? undefined : step.node?.output,
      took: step.node?.startedAt && step.node.finishedAt ? step.node.finishedAt - step.node.startedAt : null,
      step,
      ended: step.ended,
    })
  return takes
}

export const comparedOf = (take: Take): Json | undefined =>
  take.error ? ({ error: take.error } as unknown as Json) : take.value

export interface Other {
  id: string
  title: string
  value: Json | undefined
}

/** The outputs that this one can be compared with, the nearest first. */
export function useOthers(id: string, takes: readonly Take[], shown: Take | undefined): Other[] {
  const { doc } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const before = useRunBefore(id)
  return useMemo(() => {
    const at = shown ? takes.indexOf(shown) : -1
    const found: Other[] = [...takes.slice(0, Math.max(0, at)).reverse(), ...takes.slice(at + 1)].map((take) => ({
      id: take.id,
      title: take.step ? take.title : `Attempt ${take.title}`,
      value: comparedOf(take),
    }))
    const container = chainOf(doc, id)[0]
    const index = parsePath(pathFor(view, doc, id, iter)).find((part) => part.container === container)?.index ?? 0
    if (container !== undefined && index > 0) {
      const node = nodeAt(view, doc, id, { ...iter, [container]: index - 1 })
      const word = kindOf(doc, container) === 'parallel' ? 'Branch' : 'Iteration'
      if (node) found.push({ id: 'iteration', title: `${word} ${index}`, value: returned(node) })
    }
    if (before) found.push(before)
    const { pin } = doc.blocks[id]!
    if (pin) found.push({ id: 'pin', title: 'Pinned output', value: pin.output })
    return found
  }, [doc, id, takes, shown, view, iter, before])
}

const returned = (node: NodeState): Json | undefined =>
  node.error ? ({ error: node.error } as unknown as Json) : node.output

/** The same node in the run of the draft, or of the workflow, before the one that is shown. */
function useRunBefore(id: string): Other | null {
  const run = useStore(runStore, (state) => state.id)
  const workflow = useStore(runStore, (state) => state.meta?.workflow)
  const draft = useStore(docStore, (state) => state.id)
  const { doc } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const node = nodeAt(view, doc, id, iter)
  const key = node?.key
  const found = useData(async (): Promise<Other | null> => {
    if (run === null || key === undefined) return null
    const where = draft === null ? { workflow: workflow ?? '' } : { draft }
    const { runs } = await api.runs({ ...where, limit: 20, counts: 0 })
    const at = runs.findIndex((each) => each.id === run)
    const older = at < 0 ? undefined : runs.slice(at + 1).find((each) => !isStep(each))
    if (!older) return null
    const detail = await api.node(older.id, key, { preview: 64 * 1024 })
    const error = (detail as { error?: Json }).error
    return {
      id: older.id,
      title: `Run ${older.id.slice(-8)}`,
      value: error ? { error } : (detail.output ?? undefined),
    }
  }, [run, key, draft, workflow])
  return found.value
}

/** No workflow has a slash in its name: the server names steps so. */
export const isStep = (run: { workflow: string }): boolean => run.workflow.includes('/')
