// Lines of Python in parts with a colour of their own. Not a parser: text that spans lines is all that it remembers.

export type Part = readonly [kind: '' | 'word' | 'text' | 'note' | 'number', text: string]

const WORDS =
  'False|None|True|and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|' +
  'import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield'
const TOKEN = new RegExp(
  [
    '(?<note>#.*)',
    '(?<long>[rRbBfFuU]{0,2}(?:"""|\'\'\'))',
    '(?<text>[rRbBfFuU]{0,2}(?:"(?:\\\\.|[^"\\\\])*"?|\'(?:\\\\.|[^\'\\\\])*\'?))',
    `(?<word>\\b(?:${WORDS})\\b)`,
    '(?<number>\\b\\d[\\w.]*)',
    '(?<name>\\w+)',
  ].join('|'),
  'g',
)

export function highlighted(lines: readonly string[]): Part[][] {
  let quotes = ''
  return lines.map((line) => {
    const parts: Part[] = []
    let at = 0
    const add = (kind: Part[0], to: number): void => {
      const text = line.slice(at, to)
      const last = parts.at(-1)
      if (last?.[0] === kind) parts[parts.length - 1] = [kind, last[1] + text]
      else if (text) parts.push([kind, text])
      at = to
    }
    const finishText = (from: number): void => {
      const end = line.indexOf(quotes, from)
      add('text', end < 0 ? line.length : end + 3)
      if (end >= 0) quotes = ''
    }
    if (quotes) finishText(0)
    while (at < line.length && !quotes) {
      TOKEN.lastIndex = at
      const found = TOKEN.exec(line)
      if (!found) break
      add('', found.index)
      const { groups } = found
      if (groups!.long) {
        quotes = groups!.long.slice(-3)
        finishText(TOKEN.lastIndex)
      } else {
        const kind = (['note', 'text', 'word', 'number'] as const).find((each) => groups![each])
        add(kind ?? '', found.index + found[0].length)
      }
    }
    add('', line.length)
    return parts
  })
}
