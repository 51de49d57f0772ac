// Text of the JSON view -> document, or what is wrong with the text. Only what the editor needs to draw is checked; whether the
// workflow makes sense is the server's to say.

import type { Document } from '../../net/types'
import { locate, placeOf, type Located, type TextError } from './locate'

export type Read = { doc: Document; errors: []; located: Located } | { doc: null; errors: TextError[]; located: Located }

export function readDocument(text: string): Read {
  const located = locate(text)
  if (located.error) return { doc: null, errors: [located.error], located }
  const errors: TextError[] = []
  const wrong = (pointer: string, message: string): void => {
    const place = placeOf(located.places, pointer) ?? { from: 0, to: 0 }
    const at = place.key ?? place
    errors.push({ from: at.from, to: at === place && place.to - place.from > 200 ? place.from + 1 : at.to, message })
  }
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) wrong('', 'A workflow is an object.')
  else {
    if (typeof value.format !== 'string') wrong('', 'The workflow needs "format": "weft/1".')
    if (value.name !== undefined && typeof value.name !== 'string') wrong('/name', 'The name must be text.')
    if (!isObject(value.blocks)) wrong('/blocks', 'The workflow needs "blocks", an object.')
    else for (const [id, block] of Object.entries(value.blocks)) checkBlock(`/blocks/${id.replaceAll('~', '~0').replaceAll('/', '~1')}`, block, wrong)
    if (!Array.isArray(value.edges)) wrong('/edges', 'The workflow needs "edges", a list.')
    else for (const [i, edge] of value.edges.entries()) {
      const good = isObject(edge) && typeof edge.source === 'string' && typeof edge.target === 'string' && (edge.handle === undefined || typeof edge.handle === 'string')
      if (!good) wrong(`/edges/${i}`, 'An edge has a source and a target, both ids of blocks.')
    }
    if (value.notes !== undefined && !(Array.isArray(value.notes) && value.notes.every(isObject))) wrong('/notes', 'notes must be a list of objects.')
    for (const name of ['variables', 'settings', 'input'] as const) {
      if (value[name] !== undefined && value[name] !== null && !isObject(value[name])) wrong(`/${name}`, `${name} must be an object.`)
    }
  }
  return errors.length ? { doc: null, errors, located } : { doc: value as unknown as Document, errors: [], located }
}

function checkBlock(pointer: string, block: unknown, wrong: (pointer: string, message: string) => void): void {
  if (!isObject(block)) return wrong(pointer, 'A block is an object.')
  if (typeof block.type !== 'string') wrong(pointer, 'A block needs a type.')
  if (block.name !== undefined && typeof block.name !== 'string') wrong(`${pointer}/name`, 'The name must be text.')
  if (block.parent !== undefined && block.parent !== null && typeof block.parent !== 'string') wrong(`${pointer}/parent`, 'parent must be the id of a container.')
  if (block.params !== undefined && !isObject(block.params)) wrong(`${pointer}/params`, 'params must be an object.')
  if (block.policy !== undefined && !isObject(block.policy)) wrong(`${pointer}/policy`, 'policy must be an object.')
  for (const name of ['at', 'size']) {
    const point = block[name]
    if (point !== undefined && !(Array.isArray(point) && point.length === 2 && point.every((n) => typeof n === 'number' && Number.isFinite(n)))) {
      wrong(`${pointer}/${name}`, `${name} must be two numbers.`)
    }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
