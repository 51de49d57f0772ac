// The request that a block would send when it runs: the real method and address, as far as its settings and the values show.

import type { Json, JsonObject } from '../../api/schemas'
import type { BlockSpec, Document } from '../../api/types'
import { preview, render, type Values } from '../../refs/preview'

/** "sends POST https://… for real": a verb, what it is done to, and what follows. */
export interface Effect {
  verb: string
  what: string
  rest: string
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

/** null: nothing outside is changed or asked. */
export function effectOf(doc: Document, id: string, spec: BlockSpec | undefined, values: Values | null): Effect | null {
  const block = doc.blocks[id]
  if (!block || !spec || spec.effect === 'none') return null
  return effectIn(block.type, block.params ?? {}, spec, (text) => {
    const shown = values ? preview(text, { block: id }, values) : null
    return shown?.known ? render(shown.value) : text
  })
}

/** The same of a tool: `fill` puts the arguments into a text. */
export function effectIn(
  type: string,
  params: JsonObject,
  spec: BlockSpec | undefined,
  fill: (text: string) => string,
): Effect {
  const text = (name: string): string => {
    const value = params[name]
    return value === undefined || value === null ? '' : fill(typeof value === 'string' ? value : JSON.stringify(value))
  }
  const title = spec?.title ?? type
  switch (type) {
    case 'http': {
      const method = (text('method') || 'GET').toUpperCase()
      return { verb: SAFE.has(method) ? 'asks' : 'sends', what: `${method} ${text('url')}`, rest: ' for real' }
    }
    case 'email':
      return { verb: 'sends', what: `an email to ${text('to') || 'an address'}`, rest: ' for real' }
    case 'sql':
      return { verb: 'runs', what: firstLine(text('query') || text('sql')) || 'its query', rest: ' on the database' }
    case 'redis':
      return { verb: 'sends', what: text('command') || 'its command', rest: ' to the server' }
    case 'agent':
    case 'model_router':
    case 'evaluator':
    case 'guardrail':
      return { verb: 'asks', what: text('model') || 'its model', rest: ', which may cost money' }
    case 'run_workflow':
      return { verb: 'starts', what: `a run of ${text('workflow') || 'a workflow'}`, rest: ' for real' }
    default: {
      const where = text('action') || text('operation') || text('url')
      return {
        verb: spec?.effect === 'read' ? 'asks' : 'calls',
        what: where ? `${title}: ${where}` : title,
        rest: ' for real',
      }
    }
  }
}

export const sentenceOfEffect = (effect: Effect): string => `${effect.verb} ${effect.what}${effect.rest}`

const firstLine = (text: string): string => text.trim().split('\n')[0]!.slice(0, 120)

/** `{{name}}` in the params of a tool are its arguments; encoded in an address, as the server does it. */
export function filledWith(args: Readonly<Record<string, Json>>): (text: string) => string {
  return (text) => {
    const isAddress = /^(https?:|\$\{)/.test(text)
    return text.replace(/\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}/g, (_, name: string) => {
      const shown = render(args[name])
      return isAddress ? encodeURIComponent(shown) : shown
    })
  }
}
