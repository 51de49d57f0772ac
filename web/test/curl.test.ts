import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fits, hostOf, offered, specOf } from '../src/forms/fields/connecting'
import { isCurl, paramsOfCurl } from '../src/forms/fields/curl'

test('a curl command with quotes and line ends is the params of a request', () => {
  const command = `$ curl -X PUT 'https://api.example.com/v1/orders?x=1' \\
  -H "Accept: application/json" -H'Content-Type: application/json' \\
  --data-raw $'{"name":"O\\'Neil"}' --compressed`
  assert.deepEqual(paramsOfCurl(command), {
    url: 'https://api.example.com/v1/orders?x=1',
    method: 'PUT',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
    body: `{"name":"O'Neil"}`,
  })
})

test('data makes it a POST of a form, -G a query, -u a header', () => {
  assert.deepEqual(paramsOfCurl('curl example.com/a -d a=1 -d b=2'), {
    url: 'https://example.com/a',
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'a=1&b=2',
  })
  assert.deepEqual(paramsOfCurl('curl -G --data=q=tea https://example.com'), { url: 'https://example.com?q=tea' })
  assert.deepEqual(paramsOfCurl('curl -u ada:pw https://example.com -o out.txt'), {
    url: 'https://example.com',
    headers: { Authorization: 'Basic YWRhOnB3' },
  })
  assert.equal(isCurl('https://example.com/curl it'), false)
  assert.equal(paramsOfCurl('curl --version'), null)
})

test('a connection is offered to the hosts that it is for', () => {
  const auth = { kind: 'bearer', title: 'Bot token', name: 'Authorization', prefix: '', host: 'slack.com' } as const
  assert.equal(hostOf({}, auth), 'slack.com')
  assert.equal(hostOf({ base_url: 'http://127.0.0.1:9/x' }, auth), 'http://127.0.0.1:9')
  assert.equal(hostOf({ url: 'http://127.0.0.1/x' }, auth), 'http://127.0.0.1:80')
  assert.equal(hostOf({ url: 'https://api.example.com:443/x' }, auth), 'api.example.com')
  assert.equal(hostOf({ server: 'smtp.example.com:587' }, undefined), 'smtp.example.com:587')
  assert.equal(hostOf({ url: 'https://api.example.com/<start.id>' }, undefined), 'api.example.com')
  assert.equal(hostOf({ url: '<start.url>' }, undefined), null)
  const sites = { ...auth, host: '{{site}}.atlassian.net' }
  assert.equal(hostOf({ site: 'Acme' }, sites), 'acme.atlassian.net')
  assert.equal(hostOf({}, sites), null)
  assert.equal(hostOf({ site: '<start.site>' }, sites), null)
  assert.ok(fits(['*.example.com:443'], 'api.example.com') && !fits(['*.example.com'], 'example.com'))
  assert.ok(
    fits(['http://127.0.0.1:9'], 'http://127.0.0.1:9') && fits(['smtp.example.com:587'], 'smtp.example.com:587'),
  )
  // A host without a port is HTTPS on port 443.
  for (const hosts of [['127.0.0.1'], ['127.0.0.1:9'], ['http://127.0.0.1:10']])
    assert.ok(!fits(hosts, 'http://127.0.0.1:9'))
  const all = [
    { name: 'local', hosts: ['127.0.0.1'] },
    { name: 'slack', hosts: ['slack.com'] },
  ] as never
  assert.deepEqual(
    offered(all, 'slack.com', '').map((each) => each.name),
    ['slack'],
  )
  assert.deepEqual(
    offered(all, 'slack.com', 'local').map((each) => each.name),
    ['local', 'slack'],
  )
  assert.deepEqual(
    specOf(
      'api_key',
      { secret: 's', username: '', hosts: 'a.example', header: 'X-Api-Key', hostKey: '', passphrase: '' },
      { ...auth, kind: 'query', name: 'key' },
    ),
    {
      kind: 'api_key',
      hosts: ['a.example'],
      secret: 's',
      where: 'query',
      name: 'key',
      prefix: '',
    },
  )
})
