import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../src/net/http'
import { once } from '../src/net/once'

const refused = (status: number): ApiError => new ApiError({ type: '', title: '', status, code: 'x', detail: 'x' })

test('twice at once is one request', async () => {
  const keys: string[] = []
  let answer = (_: string): void => {}
  const send = (key: string): Promise<string> => (keys.push(key), new Promise((resolve) => (answer = resolve)))
  const both = [once(['a'], send), once(['a'], send)]
  answer('run-1')
  assert.deepEqual(await Promise.all(both), ['run-1', 'run-1'])
  assert.equal(keys.length, 1)
  const third = once(['a'], send)
  answer('run-2')
  assert.equal(await third, 'run-2', 'what was answered can be asked for anew')
  assert.notEqual(keys[0], keys[1])
})

test('a request without an answer is sent again with its key, a refused one is not', async () => {
  const keys: string[] = []
  const fail =
    (error: Error) =>
    (key: string): Promise<never> => (keys.push(key), Promise.reject(error))
  await assert.rejects(once(['b'], fail(refused(0)), 0))
  await assert.rejects(once(['b'], fail(refused(502)), 1000))
  await assert.rejects(once(['b'], fail(refused(422)), 2000))
  await assert.rejects(once(['b'], fail(refused(0)), 3000))
  assert.equal(keys[0], keys[1])
  assert.equal(keys[1], keys[2])
  assert.notEqual(keys[2], keys[3], 'of what was refused nothing was made')
  await assert.rejects(once(['b'], fail(refused(0)), 200_000))
  assert.notEqual(keys[3], keys[4], 'much later it is meant anew')
  await assert.rejects(once(['c'], fail(refused(0)), 0))
  assert.equal(new Set(keys).size, 4)
})
