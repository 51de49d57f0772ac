// The package as it is published against a real server: WEFT_URL, and WEFT_CLIENT is the file that it begins with. A line
// `restart` on stdout asks for a kill -9 of the server and a new one at the same address.

import assert from 'node:assert/strict'
import { test } from 'node:test'

const { ApiError, RunFailed, Weft } = await import(process.env.WEFT_CLIENT)
const weft = new Weft()

const START = { type: 'start', name: 'Start' }

function inOrder(name, blocks) {
  const ids = ['start', ...Object.keys(blocks)]
  const edges = ids.slice(1).map((target, n) => ({ source: ids[n], target }))
  return { format: 'weft/1', name, blocks: { start: START, ...blocks }, edges }
}

const double = inOrder('double', { calc: { type: 'set', name: 'Calc', params: { value: { n: '<input.n>' } } } })
const asking = inOrder('asking', {
  ask: { type: 'approval', name: 'Ask', params: { title: 'Pay?', actions: ['approve', 'reject'] } },
})

const talk = inOrder('talk', {
  ask: {
    type: 'agent',
    name: 'Ask',
    params: {
      model: 'dev:m',
      prompt: 'Call double_it with n 4',
      tools: [
        {
          name: 'double_it',
          workflow: 'double',
          approve: 'always',
          arguments: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
        },
      ],
    },
  },
})

async function all(events) {
  const found = []
  for await (const event of events) found.push(event)
  return found
}

test('a run of a stored workflow, and any other route', async () => {
  const saved = await weft.call('POST /api/workflows', { body: double })
  assert.equal(saved.name, 'double')
  const run = await weft.run('double', { n: 4 })
  assert.deepEqual([run.status, run.output], ['succeeded', { n: 4 }])
  const { runs } = await weft.call('GET /api/runs', { query: { workflow: 'double' } })
  assert.deepEqual(
    runs.map((each) => each.id),
    [run.id],
  )
  assert.match(
    String(await weft.call('GET /api/runs/{id}/plan', { path: { id: run.id }, query: { format: 'text' } })),
    /calc/i,
  )
  const first = await weft.start('double', { n: 1 }, { key: 'mine' })
  const again = await weft.start('double', { n: 1 }, { key: 'mine' })
  assert.deepEqual([again.run, again.created], [first.run, false])
})

test('a question, its answer and the events', async () => {
  const asked = await weft.run(asking)
  assert.equal(asked.status, 'waiting')
  const { link } = asked.waits[0]
  assert.equal((await weft.readLink(link)).title, 'Pay?')
  await weft.answer(link, 'approve', {}, 'ada')
  await assert.rejects(weft.answer(link, 'approve'), (error) => error instanceof ApiError && error.status === 409)
  assert.equal((await weft.waitFor(asked.id)).status, 'succeeded')
  const events = await all(weft.follow(asked.id))
  assert.deepEqual(
    events.map((event) => event.seq),
    events.map((_, n) => n + 1),
  )
  assert.equal(events.at(-1).type, 'run.finished')
  assert.deepEqual(await all(weft.follow(asked.id, { after: events.length })), [])
})

test('text, tools and waits while a run goes', async () => {
  const { run } = await weft.start(talk)
  const shown = []
  for await (const event of weft.follow(run, { text: true })) {
    shown.push(event)
    if (event.type === 'wait') {
      const { waits } = await weft.call('GET /api/waits', { query: { run } })
      await weft.answer(waits.find((each) => each.id === event.wait).link, 'approve')
    }
  }
  const text = shown.filter((each) => each.type === 'text').map((each) => each.text)
  assert.equal(text.join(''), 'The tool answered: {"n":4}')
  const rest = shown.filter((each) => each.type !== 'text')
  assert.deepEqual(
    rest.map((each) => [each.type, each.tool ?? each.title ?? each.outcome ?? each.status]),
    [
      ['wait', 'Call double_it?'],
      ['wait_closed', 'answered'],
      ['tool_started', 'double_it'],
      ['tool_finished', 'double_it'],
      ['finished', 'succeeded'],
    ],
  )
  assert.deepEqual([rest[2].arguments, rest[3].output.n, rest[3].error], [{ n: 4 }, 4, null])
})

test('refusals', async () => {
  await assert.rejects(weft.start('nothing'), (error) => error.code === 'workflow_not_found' && error.status === 404)
  const wrong = { ...double, blocks: { start: START, calc: { type: 'nonsense', name: 'N' } } }
  await assert.rejects(weft.call('POST /api/workflows', { body: wrong }), (error) => {
    return error.status === 422 && error.diagnostics.length > 0
  })
  const away = new Weft({ url: 'http://127.0.0.1:1' })
  await assert.rejects(away.call('GET /api/version'), (error) => error.status === 0 && /weft serve/.test(error.hint))
  const stop = { type: 'function', name: 'Stop', params: { code: "throw new Error('no more')" } }
  const failing = inOrder('failing', { stop })
  await assert.rejects(weft.run(failing), (error) => error instanceof RunFailed && /no more/.test(error.message))
})

test('files', async () => {
  const content = new Uint8Array(2_000_000).map((_, n) => (n * 7) % 251)
  const file = await weft.upload(content, 'data.bin')
  assert.deepEqual([file.name, file.size], ['data.bin', content.length])
  const response = await weft.download(file.id)
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), content)
})

test('a request whose answer is lost makes one run', async () => {
  let lose = 2
  const losing = new Weft({
    fetch: async (...request) => {
      const response = await fetch(...request)
      if (request[1]?.method === 'POST' && lose-- > 0) {
        await response.body.cancel()
        throw new TypeError('fetch failed')
      }
      return response
    },
  })
  await losing.call('GET /healthz')
  const started = await losing.start('double', { n: 77 })
  const { runs } = await weft.call('GET /api/runs', { query: { workflow: 'double' } })
  const those = runs.filter((run) => run.input_summary.includes('77'))
  assert.deepEqual(
    those.map((run) => run.id),
    [started.run],
  )
})

test('following a run over kill -9 of the server', async () => {
  const naps = Array.from({ length: 20 }, (_, n) => [
    `nap${n}`,
    { type: 'wait', name: `Nap ${n}`, params: { seconds: 0.2 } },
  ])
  const { run } = await weft.start(inOrder('naps', Object.fromEntries(naps)))
  const seen = []
  for await (const event of weft.follow(run)) {
    seen.push(event.seq)
    if (seen.length === 8) process.stdout.write('\nrestart\n')
    if (event.type === 'run.finished') assert.equal(event.data.status, 'succeeded')
  }
  assert.ok(seen.length > 40)
  assert.deepEqual(
    seen,
    seen.map((_, n) => n + 1),
  )
  assert.equal((await weft.waitFor(run)).status, 'succeeded')
})
