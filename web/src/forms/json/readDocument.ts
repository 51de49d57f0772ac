// Text of the JSON view -> document, or what is wrong with the text. Only what the editor needs to draw is checked; the
// server checks the workflow itself.

import { repair } from '../../net/repair'
import type { Document } from '../../api/types'
import { locate, placeOf, type Located, type TextError } from './locate'

export type Read =
  | { doc: Document; errors: []; located: Located }
  | { doc: null; errors: TextError[]; located: Located }

export function readDocument(text: string): Read {
  const located = locate(text)
  if (located.error) return { doc: null, errors: [located.error], located }
  const { document, faults } = repair(JSON.parse(text))
  const errors = faults.map(({ pointer, message }): TextError => {
    const place = placeOf(located.places, pointer) ?? { from: 0, to: 0 }
    const at = place.key ?? place
    return { from: at.from, to: at === place && place.to - place.from > 200 ? place.from + 1 : at.to, message }
  })
  return errors.length ? { doc: null, errors, located } : { doc: document, errors: [], located }
}
