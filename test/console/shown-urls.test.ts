import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operations } from '../../src/operators/operations.ts'
import { roleOf } from '../../src/operators/operation.ts'
import { urlFor } from '../../src/operators/destinations/destinations.ts'
import { urlFaults } from '../../src/core/delivery/endpoint-url.ts'
import { someCall } from '../support/calls/calls.ts'
import { startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'

const h = '[not shown to a reader]'

test('a reader sees a URL without what stands in its query, and all others see it as it is', () => {
  const cases: [url: string, shown: string][] = [
    ['https://example.com/', 'https://example.com/'],
    ['https://example.com/hook', 'https://example.com/hook'],
    ['https://example.com/hook?', 'https://example.com/hook?'],
    ['https://example.com/hook?token=abc', `https://example.com/hook?token=${h}`],
    ['https://example.com?token=abc', `https://example.com?token=${h}`],
    ['https://example.com/?a=1&b=2', `https://example.com/?a=${h}&b=${h}`],
    ['https://example.com/?a=1=2&&b=', `https://example.com/?a=${h}&&b=${h}`],
    ['https://example.com/?abc', `https://example.com/?${h}`],
    ['https://example.com/?=abc', `https://example.com/?=${h}`],
    ['https://example.com/?a=x?b=y', `https://example.com/?a=${h}`],
    ['https://example.com/?a=1;b=2', `https://example.com/?a=${h}`],
    ['https://example.com/?a=1#abc', `https://example.com/?a=${h}#${h}`],
    ['https://example.com/#abc?a=1', `https://example.com/#${h}`],
    ['https://example.com/#a#b', `https://example.com/#${h}`],
  ]
  for (const [url, shown] of cases) {
    assert.equal(urlFor('reader', url), shown)
    assert.equal(urlFor('operator', url), url)
    assert.equal(urlFor('admin', url), url)
    if (shown !== url) assert.notDeepEqual(urlFaults(shown), [], 'it cannot be set by mistake')
  }
})

test('no answer that a reader gets has what stands in the query of a URL or in a body, whatever it asks for', async (t) => {
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const urls = (secret: string) => [`https://example.com/hook?token=${secret}&k=${secret}-2#${secret}-3`]
  await deployment.destination({ urls: urls('s3cret-before') })
  await deployment.produce([someCall({ messageId: 'm-1' })])
  const keyed = { body: { all: '{"routing_key":"s3cret-key"}' } }
  const set = await console.ok(200, 'PATCH', '/destinations/crm', keyed)
  assert.ok(JSON.stringify(set).includes('s3cret-key'))
  const change = await console.ok(200, 'PATCH', '/destinations/crm', {
    urls: urls('s3cret-after').map((url) => ({ url })),
  })
  assert.ok(JSON.stringify(change).includes('s3cret-after'))
  const made = await console.ok(201, 'POST', '/tokens', { id: 'eyes', role: 'reader' })
  const asReader = { headers: { authorization: `Bearer ${String(made.token)}` } }

  const answered = new Set<string>()
  for (const operation of operations) {
    const { id, method, path } = operation
    if (method !== 'GET' || roleOf(operation) !== 'reader') continue
    for (const of of path.includes('{id}') ? ['crm', 'shop', 'm-1'] : ['']) {
      const { status, text } = await console.call('GET', path.replace('{id}', of), asReader)
      if (status === 200) answered.add(id)
      assert.ok(!text.includes('s3cret'), `${id}: ${text}`)
    }
  }
  for (const id of [
    'listDestinations',
    'showDestination',
    'overview',
    'exportSettings',
    'listSettingsHistory',
  ])
    assert.ok(answered.has(id), id)

  // That it was changed, and by whom, a reader sees all the same.
  const { body } = await console.call('GET', '/settings/history?destination=crm&limit=1', asReader)
  const [{ changed, actor }] = body.data as [{ actor: string; changed: { changes: unknown[] }[] }]
  const shown = [{ url: `https://example.com/hook?token=${h}&k=${h}#${h}` }]
  assert.equal(actor, 'ADMIN_TOKEN')
  assert.deepEqual(changed[0]!.changes, [{ field: 'urls', from: shown, to: shown }])

  const exported = await console.call('GET', '/settings/export', asReader)
  const applied = await console.call('POST', '/settings/apply', {
    json: { settings: exported.body.settings },
  })
  assert.equal(applied.status, 400)
  assert.match(applied.text, /holds white space/)
})
