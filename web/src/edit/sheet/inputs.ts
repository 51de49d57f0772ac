// The values that a block can read, in groups: the containers around it, the blocks before it by distance, environment names,
// variables. And the values of what it reads, for when it runs alone.

import type { Json } from '../../api/schemas'
import type { Document } from '../../api/types'
import { chainOf, kindOf, nameOf, type Specs } from '../../document/document'
import { nodeAt, parsePath, pathFor, type NodeState } from '../../run'
import { itemsOf, preview, type Values } from '../../refs/preview'
import { aroundOf, LOOP_FIELDS, reachable, referencesOf, refName } from '../../refs/scope'
import { iconOf, type IconName } from '../../ui/icons'
import { durationText } from '../../ui/time'
import type { ShownRun } from '../../forms/fields/scope'

export interface InputGroup {
  id: string
  title: string
  icon: IconName
  note: string
  /** The reference of the whole value, without brackets; null: only its fields can be read. */
  ref: string | null
  value: Json | undefined
  /** The beginning of references to the scope of a container. */
  scope?: string
  /** Names without values: `${NAME}`. */
  names?: readonly string[]
  pinned?: boolean
}

const FEEDBACK = 1e6
const OUTER = 1000

export function valuesOf(doc: Document, specs: Specs, run: ShownRun | null): Values | null {
  if (!run) return null
  return { view: run.view, doc, iter: run.iter, specs, ...(run.input === undefined ? {} : { input: run.input }) }
}

export function inputGroups(
  doc: Document,
  id: string,
  specs: Specs,
  run: ShownRun | null,
  env: readonly string[] | null,
): InputGroup[] {
  const groups: InputGroup[] = []
  const values = valuesOf(doc, specs, run)
  const around = aroundOf(doc, { block: id })
  for (const container of around) {
    const kind = kindOf(doc, container, specs)
    const innermost = around.find((other) => kindOf(doc, other, specs) === kind) === container
    groups.push({
      scope: innermost && kind ? kind : refName(doc, container),
      id: `scope ${container}`,
      title: `This ${kind === 'loop' ? 'iteration' : 'branch'} of ${nameOf(doc, container)}`,
      icon: iconOf(doc.blocks[container]!.type),
      note: '',
      ref: null,
      value: scopeOf(doc, container, id, values),
    })
  }
  for (const { block, mode, distance } of reachable(doc, { block: id }, specs)) {
    const at = doc.blocks[block]!
    const node = run ? nodeAt(run.view, doc, block, run.iter) : undefined
    const steps = Math.max(1, Math.round((distance % FEEDBACK) % OUTER))
    const far =
      mode === 'previous'
        ? 'previous iteration'
        : mode === 'last'
          ? 'last iteration'
          : `${steps} ${steps === 1 ? 'step' : 'steps'} back`
    groups.push({
      id: block,
      title: nameOf(doc, block),
      icon: iconOf(at.type, specs.get(at.type)?.icon),
      note: [at.pin ? 'pinned' : tookOf(node), far].filter(Boolean).join(', '),
      ref: refName(doc, block),
      value: valueOfBlock(doc, block, id, values),
      ...(at.pin ? { pinned: true } : {}),
    })
  }
  if (env?.length) {
    const note = env.length === 1 ? '1 name' : `${env.length} names`
    groups.push({ id: 'env', title: 'Environment', icon: 'settings', note, ref: null, value: undefined, names: env })
  }
  const variables = run?.view.seq ? run.view.variables : (doc.variables ?? {})
  const count = Object.keys(variables).length
  if (count)
    groups.push({
      id: 'variables',
      title: 'Variables',
      icon: 'variables',
      note: String(count),
      ref: 'workflow',
      value: variables,
    })
  return groups
}

export interface Given {
  blocks: Record<string, Json>
  input: Json | undefined
  variables: Record<string, Json>
  /** Names of blocks that are read and have no value yet. */
  missing: string[]
  /** Nodes whose output is too large for the log: it must be asked for. By block. */
  large: Record<string, NodeState>
}

/** The values that the references of a block read, in the iteration that is shown. A pinned output counts first. */
export function givenTo(doc: Document, id: string, specs: Specs, run: ShownRun | null): Given {
  const values = valuesOf(doc, specs, run)
  const found: Given = {
    blocks: {},
    input: run?.input,
    variables: run?.view.seq ? { ...run.view.variables } : {},
    missing: [],
    large: {},
  }
  for (const { target } of referencesOf(doc, id, specs)) {
    if (target?.kind === 'scope') {
      const value = scopeOf(doc, target.container, id, values)
      if (value === undefined) found.missing.push(nameOf(doc, target.container))
      found.blocks[target.container] = value ?? {}
    } else if (target?.kind === 'block' && target.block !== id && !(target.block in found.blocks)) {
      const value = valueOfBlock(doc, target.block, id, values)
      if (value !== undefined) found.blocks[target.block] = value
      else {
        const node = run ? nodeAt(run.view, doc, target.block, run.iter) : undefined
        if (node?.size !== undefined) found.large[target.block] = node
        else if (node?.status !== 'skipped') found.missing.push(nameOf(doc, target.block))
        found.blocks[target.block] = null
      }
    }
  }
  const around = chainOf(doc, id)
  if (around.some((container) => container in found.blocks))
    for (const container of around) found.blocks[container] ??= scopeOf(doc, container, id, values) ?? {}
  found.missing = [...new Set(found.missing)]
  return found
}

function valueOfBlock(doc: Document, block: string, reader: string, values: Values | null): Json | undefined {
  const pin = doc.blocks[block]?.pin
  if (pin) return pin.output
  if (!values) return undefined
  const shown = preview(`<${refName(doc, block)}>`, { block: reader }, values)
  return shown?.known ? shown.value : undefined
}

/** The value that `<loop.…>` reads: undefined while the container has not begun. */
function scopeOf(doc: Document, container: string, reader: string, values: Values | null): Json | undefined {
  if (!values) return undefined
  const here = parsePath(pathFor(values.view, doc, reader, values.iter)).find((part) => part.container === container)
  if (!here || !nodeAt(values.view, doc, container, values.iter)) return undefined
  const found: Record<string, Json> = { index: here.index, iteration: here.index }
  const items = itemsOf(container, values)
  if (items) {
    found.item = items[here.index] ?? null
    found.currentItem = found.item
    found.items = items
  }
  return found
}

/** Names that only old workflows use have values, but are not shown. */
export const SHOWN_FIELDS: ReadonlySet<string> = new Set(LOOP_FIELDS.filter((field) => field !== 'iteration'))

function tookOf(node: NodeState | undefined): string {
  if (!node?.startedAt || !node.finishedAt) return ''
  return durationText(node.finishedAt - node.startedAt)
}
