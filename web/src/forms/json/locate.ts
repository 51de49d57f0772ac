// Where things are in JSON text: a range for each JSON pointer, and the first thing that is wrong. Reads as far as it can, so
// that a text with an error still has places above it.

import { escapePointer } from '../../refs/parse'

/** Offsets into the text. `key`: of the member's name, for members of objects. */
export interface Place {
  from: number
  to: number
  key?: { from: number; to: number }
}

export interface TextError {
  from: number
  to: number
  message: string
}

export interface Located {
  places: ReadonlyMap<string, Place>
  error: TextError | null
}

const DEPTH_MAX = 200

export function locate(text: string): Located {
  const places = new Map<string, Place>()
  let at = 0
  const fail = (message: string, from = at, to = from + 1): never => {
    throw new Wrong({ from: Math.min(from, text.length), to: Math.min(Math.max(to, from), text.length), message })
  }
  const blank = (): void => {
    while (at < text.length && (text[at] === ' ' || text[at] === '\n' || text[at] === '\t' || text[at] === '\r')) at++
  }
  const string = (what: string): string => {
    const from = at
    if (text[at] !== '"')
      fail(at >= text.length ? `The text ends where ${what} should be.` : `Expected ${what} in double quotes.`)
    for (at++; ; at++) {
      const char = text[at]
      if (char === undefined || char === '\n') fail('The quotes are not closed.', from, at)
      if (char === '"') break
      if (char === '\\') at++
    }
    at++
    try {
      return JSON.parse(text.slice(from, at)) as string
    } catch {
      return fail('Invalid escape or control character.', from, at)
    }
  }
  const value = (pointer: string, depth: number, key?: Place['key']): void => {
    blank()
    const from = at
    const char = text[at]
    if (depth > DEPTH_MAX) fail('Nested too deeply.')
    if (char === '{') {
      at++
      const seen = new Set<string>()
      for (blank(); text[at] !== '}'; ) {
        const start = at
        const name = string('a name')
        if (seen.has(name)) fail(`${JSON.stringify(name)} is used twice.`, start, at)
        seen.add(name)
        const named = { from: start, to: at }
        blank()
        if (text[at] !== ':') fail('Expected a colon.')
        at++
        value(`${pointer}/${escapePointer(name)}`, depth + 1, named)
        blank()
        if (text[at] === ',') {
          const comma = at++
          blank()
          if (text[at] === '}') fail('Trailing comma.', comma)
        } else if (text[at] !== '}')
          fail(
            at >= text.length ? 'The object is not closed.' : 'Expected a comma or }.',
            at >= text.length ? from : at,
          )
      }
      at++
    } else if (char === '[') {
      at++
      let index = 0
      for (blank(); text[at] !== ']'; index++) {
        value(`${pointer}/${index}`, depth + 1)
        blank()
        if (text[at] === ',') {
          const comma = at++
          blank()
          if (text[at] === ']') fail('Trailing comma.', comma)
        } else if (text[at] !== ']')
          fail(at >= text.length ? 'The list is not closed.' : 'Expected a comma or ].', at >= text.length ? from : at)
      }
      at++
    } else if (char === '"') string('text')
    else {
      const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/.exec(
        text.slice(at, at + 400),
      )
      if (!word) {
        const wrong = /^[\w.+-]+/.exec(text.slice(at, at + 60))?.[0]
        fail(
          at >= text.length
            ? 'The text ends where a value should be.'
            : wrong
              ? `${wrong} is not a JSON value.`
              : 'Expected a value.',
          at,
          at + (wrong?.length ?? 1),
        )
      }
      at += word![0].length
    }
    places.set(pointer, { from, to: at, ...(key ? { key } : {}) })
  }
  try {
    value('', 0)
    blank()
    if (at < text.length) fail('Unexpected text after the end.', at, text.length)
    return { places, error: null }
  } catch (error) {
    if (error instanceof Wrong) return { places, error: error.where }
    throw error
  }
}

/** The place of a pointer, or of the nearest thing around it. Of a member, its name when `key` is asked for. */
export function placeOf(places: ReadonlyMap<string, Place>, pointer: string): Place | undefined {
  for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const place = places.get(at)
    if (place) return place
    if (!at) return undefined
  }
}

class Wrong extends Error {
  constructor(readonly where: TextError) {
    super(where.message)
  }
}
