import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EMPTY_ROW,
  OPERATORS,
  readCondition,
  readsSomething,
  sourceOf,
  writeCondition,
  type Condition,
  type Operator,
  type Row,
} from '../src/forms/conditions/condition'
import { random } from './help'

const rows = (text: string): string[] | null =>
  readCondition(text)?.rows.map((row) => [row.left, row.operator, row.right].join('|')) ?? null

test('expressions as rows', () => {
  const cases: [string, string[]][] = [
    ['<start.amount> > 500', ['<start.amount>|greater|500']],
    ['<start.amount> <= 100', ['<start.amount>|at_most|100']],
    ['<loop.index> < 3', ['<loop.index>|less|3']],
    ['<loop.index> < <parallel.item>', ['<loop.index>|less|<parallel.item>']],
    [
      "<start.amount> > 500 && <workflow.status> !== 'pass'",
      ['<start.amount>|greater|500', '<workflow.status>|differs|pass'],
    ],
    ['<a.ok> || !<b.ok>', ['<a.ok>|true|', '<b.ok>|false|']],
    ['(<a.n> == 1) && (<b.n> === -2.5)', ['<a.n>|equals|1', '<b.n>|equals|-2.5']],
    ['(<a.n> == null || <a.n> == true)', ['<a.n>|equals|null', '<a.n>|true|']],
    ['(<a.tags> ?? "").includes("x y")', ['<a.tags>|contains|x y']],
    ["!<a.tags>.includes('x')", ['<a.tags>|lacks|x']],
    ['<a.name>.startsWith(<b.name>) && <a.name>.endsWith("z")', ['<a.name>|starts|<b.name>', '<a.name>|ends|z']],
    ['(<a.x> ?? "").length === 0', ['<a.x>|empty|']],
    ['<a.x>.length != 0', ['<a.x>|filled|']],
    ['<start.who>.length <= 5', ['<start.who>.length|at_most|5']],
    ['<a.n> * 2 + <b.n> > ${MIN}', ['<a.n> * 2 + <b.n>|greater|${MIN}']],
    ['<a.kind> == "5"', ['<a.kind>|equals|"5"']],
    ['["red", "green"].includes(<a.color>)', ['["red", "green"]|contains|<a.color>']],
    ['<a.text> == "Hi <b.name>"', ['<a.text>|equals|Hi <b.name>']],
    ['<draft.score ?? 0> > 3', ['<draft.score ?? 0>|greater|3']],
    ['<Draft one.x["a b"][0]> == ""', ['<Draft one.x["a b"][0]>|equals|']],
  ]
  for (const [text, expected] of cases) assert.deepEqual(rows(text), expected, text)
})

test('what says nothing yet has no row', () => {
  for (const text of ['', ' ', 'true', 'false'])
    assert.deepEqual(readCondition(text), { match: 'all', rows: [], otherwise: text.trim() })
})

test('what is more than rows is not read', () => {
  const texts = [
    '<a.x> && <b.x> || <c.x>',
    '(<a.x> && <b.x>) || <c.x>',
    '<a.x> ? 1 : 2',
    'Math.random() > 0.5',
    '<a.list>.some((x) => x > 3)',
    '<a.x> = 3',
    'return <a.x>',
    'typeof <a.x> == "text"',
    '`${<a.x>}` == "b"',
    '<a.x> > 1 > 0',
    '!(<a.x> == 1)',
    '!<a.x> == 1',
    '<a.x> // note',
    '/x/.test(<a.x>)',
    '<a.x> <b.x>',
    '<a.x> ==',
    '(<a.x> == 1',
    '<a.x>, <b.x>',
    'count > 3',
    '<start.n> > !!!',
    '<a.x> ?? 3 == 3',
    'a < b && c > d',
    '{}',
    '<a.x> == {}',
    '!<a.name>.startsWith("b")',
    '(<a.x> == 1) == true',
    '<a.x> == "\\x"',
    '!!<a.x>',
    '"" == <a.x>',
  ]
  for (const text of texts) assert.equal(readCondition(text), null, text)
})

test('an unchanged row is written as it was', () => {
  const texts = [
    '<a.x> === "pass"',
    '<a.x> == "pass"',
    '<a.x> !== 3 && <a.y> != 4',
    '<a.list>.includes("x")',
    '!(<a.list> ?? "").includes("x")',
    '<a.x>.length === 0 || <a.x>.length == 0',
    '!<a.ok>',
    '<a.ok> === true',
    '<a.ok> == false',
    '(<a.n> + 1).length != 0',
    '!(<a.n> + 1)',
    '(<a.name> ?? "").endsWith("<b.name>!")',
    '<a.x> == "<b.x>"',
    '-<a.x> < 3',
    '<a.x> == "say \\"hi\\""',
  ]
  for (const text of texts) assert.equal(writeCondition(readCondition(text)!), text)
})

test('typed values: references, numbers and words of JavaScript as they are, the rest as text', () => {
  const cases: [string, string][] = [
    ['5', '5'],
    [' 5 ', '5'],
    ['-1.5', '-1.5'],
    ['true', 'true'],
    ['null', 'null'],
    ['pass', '"pass"'],
    ['', '""'],
    ['"5"', '"5"'],
    ["'5'", "'5'"],
    ['<a.b>', '<a.b>'],
    ['<a.b>.length', '<a.b>.length'],
    ['Hi <a.b>', '"Hi <a.b>"'],
    ['2026-11-22', '"2026-11-22"'],
    ['a && b', '"a && b"'],
    ['<a.b> && <c.d>', '"<a.b> && <c.d>"'],
    ['say "hi"', '"say \\"hi\\""'],
    ['["a", 1]', '["a", 1]'],
    ['${KEY}', '${KEY}'],
    ['<a.b>,', '"<a.b>,"'],
    ["it's", '"it\'s"'],
    ['1 <', '"1 <"'],
  ]
  for (const [typed, source] of cases) assert.equal(sourceOf(typed), source, typed)
  assert.equal(readsSomething('<a.b>.c'), true)
  assert.equal(readsSomething('amount'), false)
})

test('rows without a first value are not written', () => {
  const base: Condition = { match: 'any', rows: [EMPTY_ROW], otherwise: 'false' }
  assert.equal(writeCondition(base), 'false')
  assert.equal(
    writeCondition({ ...base, rows: [EMPTY_ROW, { left: '<a.b>', operator: 'greater', right: '3', form: 0 }] }),
    '<a.b> > 3',
  )
})

test('whatever rows are made, they are read back', () => {
  const rnd = random(7)
  const one = <T>(list: readonly T[]): T => list[Math.floor(rnd() * list.length)]!
  const lefts = [
    '<start.amount>',
    '<Draft one.text>',
    '<loop.index>',
    '<a.b>.length',
    '<a.n> + 1',
    '<a.list>[0].name',
    '${ENV}',
    '(<a.n> - 1) * 2',
    '-<a.n>',
    '5',
    'word',
    '["x", "y"]',
  ]
  const rights = [
    '5',
    '-1.25',
    'pass',
    'two words',
    '<other.value>',
    'Hi <who.name>!',
    '',
    'true',
    'null',
    '"7"',
    'a "quoted" text',
    'a && b',
    '2026-11-22',
    "it's",
    '<a.n> * 2',
  ]
  const operators = Object.keys(OPERATORS) as Operator[]
  for (let i = 0; i < 3000; i++) {
    const made: Row[] = Array.from({ length: 1 + Math.floor(rnd() * 4) }, () => ({
      left: one(lefts),
      operator: one(operators),
      right: one(rights),
      form: 0,
    }))
    const match = made.length > 1 && rnd() < 0.5 ? 'any' : 'all'
    const text = writeCondition({ match, rows: made, otherwise: '' })
    const read = readCondition(text)
    assert.ok(read, text)
    assert.equal(writeCondition(read), text)
    assert.equal(read.match, match, text)
    assert.equal(read.rows.length, made.length, text)
  }
})
