// Where a finding is, in words, and how to get there.

import type { Diagnostic } from '../api/schemas'
import type { Document } from '../api/types'
import { absoluteAt, indexOf, nameOf, type Specs } from '../document/document'
import { showFindings } from '../state/calm'
import { sizeOf } from '../geometry/size'
import { select, uiStore } from '../state/ui'
import { lookAt, markFound } from './view'

export interface FoundPlace {
  block: string | null
  edge: string | null
  /** `Draft, Prompt`. */
  words: string
}

export function placeOfFinding(doc: Document, finding: Diagnostic, specs: Specs): FoundPlace {
  const [area, key, section, param, ...deeper] = pointerParts(finding.pointer)
  if (area === 'edges' && key !== undefined) {
    const edge = indexOf(doc).edges[Number(key)]
    if (edge) return { block: null, edge: edge.id, words: `${nameOf(doc, edge.source)} to ${nameOf(doc, edge.target)}` }
  }
  const block =
    area === 'blocks' && key !== undefined && doc.blocks[key]
      ? key
      : finding.block && doc.blocks[finding.block]
        ? finding.block
        : null
  if (block) {
    const schema =
      section === 'params' && param !== undefined
        ? specs.get(doc.blocks[block]!.type)?.params.properties?.[param]
        : undefined
    const number = deeper.find((part) => /^\d+$/.test(part))
    const field = schema?.title ?? param ?? section ?? finding.field
    return {
      block,
      edge: null,
      words: [nameOf(doc, block), field && (number === undefined ? field : `${singular(field)} ${Number(number) + 1}`)]
        .filter(Boolean)
        .join(', '),
    }
  }
  // The message of a setting has the name that its form has.
  const words = area === 'settings' ? ['Workflow settings'] : ['Workflow', area, key]
  return { block: null, edge: null, words: words.filter(Boolean).join(', ') }
}

/** `Cases` -> `Case`: the name of one thing in a list, as the server's messages have it. */
const singular = (title: string): string => title.replace(/(?<=ch|sh|x)es$|(?<!s)s$/, '')

/** Show what a finding is about: select it, open its settings, and put the focus into the field. */
export function goToFinding(doc: Document, finding: Diagnostic, specs: Specs): void {
  const { block, edge } = placeOfFinding(doc, finding, specs)
  if (block) showFindings(block)
  select(block ? { blocks: [block] } : edge ? { edges: [edge] } : {})
  uiStore.setState({ tab: 'config' })
  if (block) {
    lookAt(absoluteAt(doc, block), sizeOf(doc.blocks[block]!, specs.get(doc.blocks[block]!.type)))
    markFound(block)
  }
  const parts = pointerParts(finding.pointer)
  const path = parts.slice(!block ? 0 : parts[2] === 'params' ? 3 : 2)
  // The panel is drawn first, then its fields.
  requestAnimationFrame(() => requestAnimationFrame(() => focusField(path)))
}

/** Focus the field of a path, or the nearest one around it that has a control. */
function focusField(path: readonly string[]): void {
  const fields = [...document.querySelectorAll<HTMLElement>('[data-inspector] [data-testid^="field-"]')]
  for (let length = path.length; length > 0; length--) {
    const wanted = `field-${path.slice(0, length).join('.')}`
    const field =
      fields.find((each) => each.dataset.testid === wanted) ??
      fields.find((each) => each.dataset.testid?.startsWith(`${wanted}.`))
    if (!field) continue
    for (let fold = field.closest('details'); fold; fold = fold.parentElement?.closest('details') ?? null)
      fold.open = true
    field.scrollIntoView({ block: 'center' })
    ;(field.shadowRoot?.querySelector<HTMLElement>('.cm-content') ?? field).focus()
    return
  }
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}
