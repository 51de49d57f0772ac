// Enough of SQL to colour it: words, texts, comments, numbers, and the parameters of a `sql` block.

import { StreamLanguage } from '@codemirror/language'

const WORDS = new Set(
  `add all alter analyze and any as asc begin between by case cast check conflict constraint create cross current_date
  current_timestamp default delete desc distinct do drop else end except exists explain false fetch first foreign from full
  group having if in index inner insert intersect interval into is join key lateral left like limit natural not null nulls
  offset on or order outer over partition primary recursive references returning right rows select set table temp temporary
  then to true union unique update using values view when where window with without`.split(/\s+/),
)

interface State {
  comment: boolean
}

/** A stand-in for a full grammar: SQL has a dialect for each database, and the server checks the query anyway. */
export const sql = StreamLanguage.define<State>({
  name: 'sql',
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment || stream.match('/*')) {
      state.comment = !stream.match(/^.*?\*\//)
      if (state.comment) stream.skipToEnd()
      return 'comment'
    }
    if (stream.eatSpace()) return null
    if (stream.match(/^--.*/)) return 'comment'
    if (stream.match(/^'(?:[^']|'')*(?:'|$)/)) return 'string'
    if (stream.match(/^"(?:[^"]|"")*(?:"|$)/)) return 'variableName'
    if (stream.match('::')) return 'operator'
    if (stream.match(/^:[A-Za-z_]\w*/)) return 'number'
    if (stream.match(/^\d+(?:\.\d+)?/)) return 'number'
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_$]*/u)
    if (Array.isArray(word)) return WORDS.has(word[0].toLowerCase()) ? 'keyword' : 'variableName'
    stream.next()
    return 'operator'
  },
  languageData: { commentTokens: { line: '--', block: { open: '/*', close: '*/' } } },
})
