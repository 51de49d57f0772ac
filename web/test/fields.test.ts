import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRefs } from '../src/forms/fields/check'
import { hintOf, isShown, kindOf } from '../src/forms/fields/kind'
import { fieldListOf, fieldsOf, propertiesOf, schemaOf } from '../src/forms/fields/properties'
import { readNumber } from '../src/forms/fields/number'
import { outlineRows, parentRow } from '../src/edit/outline/tree'
import { formSchema, triggersOf } from '../src/document/triggers'
import { asCurl } from '../src/watch/run/curl'
import { fieldsOf as formFields, startValues, valueProblems } from '../src/forms/fields/form'
import type { Json } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { recorded, specs } from './help'

const DOC: Document = {
  format: 'weft/1',
  variables: { status: 'open' },
  input: { type: 'object', properties: { amount: { type: 'number' } } },
  blocks: {
    start: {
      type: 'start',
      name: 'Start',
      params: {
        fields: [
          { name: 'amount', type: 'number', required: true },
          { name: 'who', default: 'ada' },
        ],
      },
    },
    calc: { type: 'function', name: 'Calc', params: { code: 'return 1' } },
    rounds: { type: 'loop', name: 'Rounds', params: { mode: 'for', count: 2 } },
    inner: { type: 'set', name: 'Inner', parent: 'rounds', params: { value: 1 } },
    after: { type: 'set', name: 'After', params: { value: 1 } },
  },
  edges: [
    { source: 'start', target: 'calc' },
    { source: 'calc', target: 'rounds' },
    { source: 'rounds', handle: 'body', target: 'inner' },
    { source: 'rounds', target: 'after' },
  ],
}
const check = (text: string, block = 'after', env: string[] | null = null) =>
  checkRefs(text, { doc: DOC, reader: { block }, specs, env })
const fix = (text: string, block?: string): string | undefined => check(text, block)[0]?.fix

test('references that are right, and text that is none', () => {
  for (const text of [
    '<start.amount>',
    '<Calc.result.x[0] ?? 1>',
    '<workflow.status>',
    '<input.amount>',
    '<calc.error.message>',
    '<Calc.output.stdout>',
    '<start.other>',
  ]) {
    assert.deepEqual(
      check(text).map((mark) => mark.ok),
      [true],
      text,
    )
  }
  assert.deepEqual(check('a < b and c > d'), [])
  assert.deepEqual(
    check('<b>bold</b>').filter((mark) => !mark.ok && mark.fix === undefined),
    [],
  )
  assert.equal(check('<loop.index>', 'inner')[0]!.ok, true)
})

test('what was probably meant', () => {
  assert.equal(fix('<Strat.amount ?? 0>'), '<Start.amount ?? 0>')
  assert.equal(fix('<start.amout>'), '<start.amount>')
  assert.equal(fix('<calc.reslt[0].x>'), '<calc.result[0].x>')
  assert.equal(fix('<workflow.statsu>'), '<workflow.status>')
  assert.equal(fix('<loop.indx>', 'inner'), '<loop.index>')
  assert.equal(check('${API_KYE}', 'after', ['API_KEY'])[0]!.fix, '${API_KEY}')
})

test('what does not run before, or is not there', () => {
  assert.match(check('<after.value>', 'calc')[0]!.message!, /does not run before/)
  assert.match(check('<loop.index>')[0]!.message!, /not inside a loop/)
  assert.match(check('<nothing.like.it>')[0]!.message!, /No block has the name/)
  assert.equal(check('${X}', 'after', null)[0]!.ok, true)
  assert.equal(check('${X}', 'after', [])[0]!.ok, false)
})

test('every param of every block type has a control', () => {
  const kinds: Record<string, string> = {}
  for (const spec of specs.values())
    for (const [name, schema] of Object.entries(spec.params.properties ?? {}))
      kinds[`${spec.type}.${name}`] = kindOf(schema, hintOf(spec.type, name, schema))
  assert.equal(kinds['function.code'], 'code')
  assert.equal(kinds['loop.condition'], 'expression')
  assert.equal(kinds['start.fields'], 'inputs')
  assert.equal(kinds['variables.assign'], 'assignments')
  assert.equal(kinds['http.method'], 'select')
  assert.equal(kinds['http.timeout_s'], 'duration')
  assert.equal(kinds['wait.seconds'], 'duration')
  assert.equal(kinds['schedule.cron'], 'cron')
  assert.equal(kinds['http.fail_on_status'], 'boolean')
  const tool = specs.get('agent')!.params.properties!.tools!.items!.properties!
  assert.equal(kindOf(tool.mcp!, hintOf(null, 'mcp', tool.mcp!)), 'tool_server')
  assert.equal(kindOf(tool.workflow!, hintOf(null, 'workflow', tool.workflow!)), 'workflow')
  assert.deepEqual(
    Object.entries(tool.mcp!.properties!).map(([name, schema]) => kindOf(schema, hintOf(null, name, schema))),
    ['text', 'pairs', 'connection', 'texts', 'duration'],
  )
})

test('the hints of a schema decide', () => {
  assert.equal(
    kindOf(
      { type: 'array', items: { type: 'object', properties: {} }, 'x-ui': { widget: 'list', handles: 'id' } },
      { widget: 'list', handles: 'id' },
    ),
    'cases',
  )
  assert.equal(kindOf({}, { widget: 'reference' }), 'value')
  assert.equal(kindOf({ type: 'object' }, { widget: 'keyvalues' }), 'pairs')
  assert.equal(isShown({ when: { mode: ['for'] } }, { mode: 'each', count: 3 }), false)
  assert.equal(isShown({ when: { mode: ['for'] } }, { mode: '<start.mode>' }), true)
  assert.equal(isShown({ when: { method: ['POST'] } }, {}, { method: 'GET' }), false)
})

test('numbers, and text that stands for one', () => {
  assert.equal(readNumber(' 12.5 '), 12.5)
  assert.equal(readNumber('<start.amount>'), '<start.amount>')
  assert.equal(readNumber(''), undefined)
  assert.equal(readNumber('1.'), 1)
  assert.equal(readNumber('0x10'), '0x10')
})

test('a form as rows and back', () => {
  const schema = {
    type: 'object',
    additionalProperties: false,
    required: ['a'],
    properties: {
      a: { type: 'number', title: 'A', minimum: 0, default: 1 },
      b: { type: 'string', enum: ['x', 'y'] },
      c: { type: 'string', format: 'date' },
      d: { type: 'string', 'x-rows': 4 },
      e: { type: 'object', properties: { f: { type: 'string' } } },
      g: {},
    },
  }
  assert.deepEqual(schemaOf(schema, propertiesOf(schema)), schema)
  assert.equal(schemaOf(undefined, []), undefined)
  const fields: Json = [
    { name: 'a', type: 'number', title: 'A', default: 1, required: true },
    { name: 'b', other: 1 },
  ]
  assert.deepEqual(fieldListOf(fieldsOf(fields)), fields)
})

test('the run form: workflow input and start fields together', () => {
  assert.deepEqual(triggersOf(DOC, specs), [{ id: 'start', name: 'Start' }])
  const schema = formSchema(DOC, 'start')
  assert.deepEqual(Object.keys(schema.properties!), ['amount', 'who'])
  assert.deepEqual(schema.required, ['amount'])
  assert.deepEqual(startValues(schema), { who: 'ada' })
  assert.deepEqual(valueProblems(schema, {}), { amount: 'Enter a value.' })
  assert.deepEqual(valueProblems(schema, { amount: 'x' }), { amount: 'Must be a number.' })
  assert.deepEqual(valueProblems(schema, { amount: 3 }), {})
  const limits = {
    type: 'object',
    properties: { n: { type: 'integer', minimum: 2 }, t: { type: 'string', pattern: '^a+$' } },
  }
  assert.deepEqual(Object.keys(valueProblems(limits, { n: 1, t: 'b' })), ['n', 't'])
  assert.deepEqual(valueProblems(limits, { n: 2.5 }), { n: 'Must be a whole number.' })
})

test('a file among the start fields is uploaded', () => {
  const fields = [{ name: 'report', type: 'file', title: 'Report', required: true }]
  const doc: Document = { ...DOC, blocks: { start: { type: 'start', params: { fields } } }, edges: [], input: {} }
  const schema = formSchema(doc, 'start')
  assert.deepEqual(schema.properties, { report: { type: 'object', format: 'file', title: 'Report' } })
  assert.equal(formFields(schema)[0]?.kind, 'file')
  assert.deepEqual(valueProblems(schema, {}), { report: 'Enter a value.' })
  assert.deepEqual(fieldListOf(fieldsOf(fields)), fields)
})

test('the command for a shell is quoted', () => {
  const text = asCurl('http://h', 'd/1', { a: "it's" }, null)
  assert.ok(text.includes(`'http://h/api/drafts/d%2F1/run'`))
  assert.ok(text.includes(`it'\\''s`))
})

test('the outline: reading order, containers, connections', () => {
  const rows = outlineRows(DOC, specs, new Set())
  assert.deepEqual(
    rows.map((row) => `${row.depth} ${row.key}`),
    [
      '0 start',
      '1 start:out>calc',
      '0 calc',
      '1 calc:out>rounds',
      '0 rounds',
      '1 rounds:body>inner',
      '1 rounds:out>after',
      '1 inner',
      '0 after',
    ],
  )
  assert.equal(parentRow(rows, 7), 4)
  assert.deepEqual(
    outlineRows(DOC, specs, new Set(['rounds']))
      .map((row) => row.key)
      .includes('inner'),
    false,
  )
  assert.ok(outlineRows(recorded('nested').document, specs, new Set()).length > 6)
})
