// Rows of a CSV file, for an evaluation: as `weft backtest --dataset` reads them.

import type { DataRow, Json } from '../../api/schemas'

export const ROWS_MAX = 1_000
const PIN = 'pin.'

/** Throws an Error that names the row. */
export function rowsOf(text: string): DataRow[] {
  const [names, ...lines] = cellsOf(text.replace(/^\uFEFF/, ''))
  if (!names || !lines.length) throw new Error('The file has no rows below the line of names.')
  if (lines.length > ROWS_MAX) throw new Error(`The file has ${lines.length} rows, and ${ROWS_MAX} is the most.`)
  return lines.map((cells, i) => {
    if (cells.length > names.length) throw new Error(`Row ${i + 2} has more cells than the first line.`)
    const values: Record<string, Json> = {}
    for (const [at, text] of cells.entries()) if (text) values[names[at]!] = readCell(text, i + 2, names[at]!)
    return rowOf(values)
  })
}

function rowOf({ expected = null, ...values }: Record<string, Json>): DataRow {
  const named = Object.entries(values)
  const pins = named.filter(([name]) => name.startsWith(PIN)).map(([name, value]) => [name.slice(PIN.length), value])
  const input = Object.fromEntries(named.filter(([name]) => !name.startsWith(PIN)))
  const whole = Object.keys(input).join() === 'input' ? Object.values(input)[0]! : input
  return { input: whole, expected, pins: Object.fromEntries(pins) as Record<string, Json> }
}

/** A cell that begins with { or [ is JSON. */
function readCell(text: string, row: number, name: string): Json {
  if (!/^\s*[{[]/.test(text)) return text
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new Error(`Row ${row}, column ${name}: a cell that begins with { or [ is JSON, and this is not.`)
  }
}

/** Lines of cells; a quoted cell may have commas, quotes and ends of lines in it. Empty lines are left out. */
function cellsOf(text: string): string[][] {
  const lines: string[][] = []
  let line: string[] = []
  for (const [all, quoted, bare = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    if (!all && !line.length) continue
    line.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    if (line.some(Boolean)) lines.push(line)
    line = []
  }
  return lines
}
