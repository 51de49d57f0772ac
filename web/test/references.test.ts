// The language of references, case by case: tests/vectors/references.json, which the compiler's tests read, too.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Json } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { find, normalize, parse, type Segment } from '../src/refs/parse'
import { reachable, resolve, type Reader } from '../src/refs/scope'
import { specs } from './help'

interface Vectors {
  find: { text: string; found: [string, number, number][] }[]
  parse: { text: string; segments: Segment[] | null; default?: Json }[]
  parse_repeated: { head: string; step: string; times: number; segments: number | null }[]
  normalize: [string, string][]
  document: Document
  scope: { reader: string; inside?: boolean; text: string; reads: Json }[]
}

const vectors = JSON.parse(
  readFileSync(join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'references.json'), 'utf8'),
) as Vectors

test('find: as the compiler', () => {
  for (const { text, found } of vectors.find) {
    assert.deepEqual(
      find(text).map((each) => [each.env ? `\${${each.text}}` : each.text, each.start, each.end]),
      found,
      text,
    )
  }
})

test('parse: as the compiler', () => {
  for (const { text, segments, ...rest } of vectors.parse) {
    const parsed = parse(text)
    assert.deepEqual(parsed?.segments ?? null, segments, text)
    if (!parsed) continue
    assert.equal(parsed.fallback !== null, 'default' in rest, text)
    if (parsed.fallback !== null) assert.deepEqual(JSON.parse(parsed.fallback), rest.default, text)
  }
  for (const { head, step, times, segments } of vectors.parse_repeated)
    assert.equal(parse(head + step.repeat(times))?.segments.length ?? null, segments, `${times} x ${step}`)
})

test('normalize: as the compiler', () => {
  for (const [name, normalized] of vectors.normalize) assert.equal(normalize(name), normalized, name)
})

test('scope: as the compiler', () => {
  for (const { reader, inside = false, text, reads } of vectors.scope)
    assert.deepEqual(whatReads(text, { block: reader, inside }), reads, `${reader} ${text}`)
})

function whatReads(text: string, reader: Reader): Json {
  const target = resolve(vectors.document, find(text)[0]!, reader, specs)
  switch (target?.kind) {
    case undefined:
      return null
    case 'env':
      return { kind: 'env', name: target.name }
    case 'input':
      return { kind: 'input', path: target.path }
    case 'variable':
      return { kind: 'variable', name: target.name, path: target.path }
    case 'scope':
      return { kind: 'scope', container: target.container, path: target.path }
    case 'block': {
      const mode = reachable(vectors.document, reader, specs).find((each) => each.block === target.block)?.mode
      return mode === undefined ? 'unreachable' : { kind: 'block', block: target.block, mode, path: target.path }
    }
  }
}
