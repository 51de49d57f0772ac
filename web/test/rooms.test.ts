// The rooms of src: a file imports from its own room and from lower ones, and no two files import each other.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'

/** Lowest first. A file of src itself is a room of its own name. */
const ROOMS = [
  'a11y',
  'keys',
  'api',
  'net',
  'document',
  'run',
  'refs',
  'geometry',
  'state',
  'ui',
  'actions',
  'canvas',
  'forms',
  'watch',
  'edit',
  'pages',
  'routes',
  'resume',
  'main',
]

/** Fields nest: a list or an object has fields in its rows. */
const NEST = /^forms\/fields\//

const SRC = join(process.env.WEFT_WEB_ROOT!, 'src')
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'|\bnew URL\('(\.[^']+)', import\.meta\.url\)/g

const imports = new Map(sources(SRC).map((file) => [relative(SRC, file), importsOf(file)]))

test('every file is in a room of the list', () => {
  assert.ok(imports.size > 150)
  const other = [...imports.keys()].filter((file) => !ROOMS.includes(roomOf(file)))
  assert.deepEqual(other, [])
})

test('no import goes to a higher room', () => {
  const upward = [...imports].flatMap(([file, targets]) =>
    targets
      .filter((target) => ROOMS.indexOf(roomOf(target)) > ROOMS.indexOf(roomOf(file)))
      .map((target) => `${file} -> ${target}`),
  )
  assert.deepEqual(upward, [])
})

test('no files import each other in a circle, but fields that nest', () => {
  const circles = circlesOf(imports).filter((circle) => !circle.every((file) => NEST.test(file)))
  assert.deepEqual(circles, [])
})

test('circles are found, whatever their length', () => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['a', 'd']],
    ['d', ['e']],
    ['e', ['d']],
    ['f', ['a']],
  ])
  assert.deepEqual(circlesOf(graph), [
    ['a', 'b', 'c'],
    ['d', 'e'],
  ])
})

function roomOf(file: string): string {
  return file.split('/')[0]!.replace(/\.tsx?$/, '')
}

function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? sources(path) : /\.tsx?$/.test(name) ? [path] : []
  })
}

/** Also what is loaded only when it is needed, and what only gives types. */
function importsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)]
    .map((match) => join(dirname(file), match[1] ?? match[2]!))
    .filter((path) => !path.endsWith('.css'))
    .map((path) => {
      // What client/ publishes names files as they are when they are compiled.
      const plain = path.replace(/\.js$/, '')
      const found = ['', '.ts', '.tsx', '/index.ts'].map((end) => plain + end).find((each) => isFile(each))
      assert.ok(found, `${relative(SRC, file)} imports ${relative(SRC, path)}`)
      return relative(SRC, found)
    })
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

/** Files that reach each other, each circle sorted. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const reached = new Map([...graph.keys()].map((file) => [file, reachedFrom(graph, file)]))
  const circles = new Map<string, string[]>()
  for (const [file, others] of reached) {
    if (!others.has(file)) continue
    const circle = [...others].filter((other) => reached.get(other)?.has(file)).sort()
    circles.set(circle.join(), circle)
  }
  return [...circles.values()]
}

function reachedFrom(graph: ReadonlyMap<string, readonly string[]>, file: string): Set<string> {
  const reached = new Set<string>()
  const open = [...(graph.get(file) ?? [])]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue
    reached.add(next)
    open.push(...(graph.get(next) ?? []))
  }
  return reached
}
