import { callFilter, leftOutBy } from '../../../src/core/call/filter.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { callTypes } from '../../../src/core/call/analytics-call.ts'
import { CallValues } from '../../../src/core/expression/call-values.ts'
import { defaultOptions, editOptions, optionsFaults } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'

const unread = (): CallValues => assert.fail('the call is read')

test('a destination without filters has no filter to evaluate', () => {
  assert.equal(callFilter(defaultOptions).filter, null)
  assert.equal(callFilter({ ...defaultOptions, deliverTo: 'every', standardWebhooks: true }).filter, null)
})

test('a call is sent if its type is chosen and, for track, its event too; a delete is always sent', () => {
  const choice = <T>(values: readonly T[]) =>
    fc.option(fc.subarray([...values], { minLength: 1 }), { nil: null })
  const names = ['Order Completed', 'order completed', 'Order', '']
  fc.assert(
    fc.property(
      choice(callTypes),
      choice(names),
      fc.constantFrom(...callTypes),
      fc.constantFrom(...names, null),
      (types, events, type, event) => {
        const { filter } = callFilter({ ...defaultOptions, types, events })
        const byType = !types || types.includes(type)
        const byEvent = type !== 'track' || !events || events.some((name) => name === event)
        const leftOut = filter && leftOutBy(filter, type, event, unread)
        assert.equal(leftOut === null, type === 'delete' || (byType && byEvent))
        assert.ok(leftOut === null || leftOut.reason === 'not_chosen')
      },
    ),
  )
})

test('a condition that is false or cannot be evaluated leaves a call out, but never a delete', () => {
  const filter = callFilter({
    ...defaultOptions,
    types: ['track'],
    where: 'call.properties.total >= 100',
  }).filter!
  const verdict = (properties: string | null, type: (typeof callTypes)[number] = 'track') =>
    leftOutBy(filter, type, 'Order', () => new CallValues(someCall({ type, properties })))
  assert.equal(verdict('{"total":100}'), null)
  assert.deepEqual(verdict('{"total":99.9}'), { reason: 'filtered', fault: null })
  const fault = 'no_such_key at line 1, column 17'
  assert.deepEqual(verdict(null), { reason: 'filtered', fault })
  // What is not chosen by its type is not read at all.
  assert.equal(leftOutBy(filter, 'identify', null, unread)!.reason, 'not_chosen')
  assert.equal(leftOutBy(filter, 'delete', null, unread), null)
})

test('a call that denies a consent that is needed is left out, but never a delete; one that denies none is sent', () => {
  const filter = callFilter({
    ...defaultOptions,
    consent: ['advertising', 'analytics'],
    where: 'false',
  }).filter!
  const reasonFor = (context: string | null, type: (typeof callTypes)[number] = 'track') =>
    leftOutBy(filter, type, 'Order', () => new CallValues(someCall({ type, context })))?.reason ?? null
  const preferences = (given: unknown) => JSON.stringify({ consent: { categoryPreferences: given } })
  assert.equal(reasonFor(preferences({ advertising: true, analytics: false })), 'no_consent')
  assert.equal(reasonFor(preferences({ advertising: false }), 'identify'), 'no_consent')
  assert.equal(reasonFor(preferences({ advertising: false }), 'delete'), null)
  // Nothing was denied: the condition is what decides.
  for (const given of [
    { advertising: true, analytics: true },
    { functional: false },
    {},
    null,
    'no',
    [false],
  ])
    assert.equal(reasonFor(preferences(given)), 'filtered', JSON.stringify(given))
  for (const context of [null, '{}', '{"consent":true}', '{"consent":null}'])
    assert.equal(reasonFor(context), 'filtered', String(context))
  assert.equal(reasonFor('{"consent":'), 'no_consent', 'what cannot be read may deny it')
})

test('every wrong option is named at once', () => {
  const faults = optionsFaults({
    maxRate: '1.5/s',
    maxInFlight: 0,
    consent: ['marketing', '', 'marketing'],
    where: 'call.propertis.total > 1',
    drop: ['messageId', 'context.ip', 'context.ip', 'traits..x', 'name.first'],
    retryWindow: '0m',
    retryTiers: ['1m', '30', '10s', '60s'],
  })
  assert.deepEqual(
    faults.map(({ field, message }) => `${field}: ${message}`),
    [
      'consent: category 2 is 0 characters long, 1-100 are allowed',
      'consent: category "marketing" is named twice',
      'maxRate: "1.5/s" is no rate: it takes a whole number from 1 to 100000 and "/s" or "/m", such as 100/s',
      'maxInFlight: 0 is not a whole number from 1 to 10000',
      'where: the expression cannot be used: line 1, column 6: No such key: propertis',
      'drop: path 1, "messageId", begins with none of properties, traits, context, anonymousId, name, category',
      'drop: path "context.ip" is named twice',
      'drop: path 4, "traits..x", is not keys with dots between them; a key with a dot goes in double quotes: properties."a.b"',
      'drop: path 5, "name.first", goes into name, which is a text',
      'retryWindow: "0m" is no duration such as 30m',
      'retryTiers: "30" is no duration such as 10s',
    ],
  )
  const good = { maxRate: '6/m', maxInFlight: 10, where: 'true', drop: ['traits."a.b"'] }
  assert.deepEqual(optionsFaults(good), [])
  assert.deepEqual(optionsFaults({ maxRate: null, maxInFlight: null, where: null, drop: null }), [])
})

test('each option can be set and taken away, and stays as it is when it is not named', () => {
  const set = {
    maxRate: '6/m',
    maxInFlight: 10,
    where: 'true',
    drop: ['context.ip'],
    traceContext: true,
    types: ['track' as const],
    events: ['Order'],
    consent: ['advertising'],
    standardWebhooks: true,
    deliverTo: 'every' as const,
    method: 'PUT' as const,
    format: 'full' as const,
    body: { track: '{"event":"${call.event}"}' },
    contentType: 'form' as const,
    batch: 100,
    batchBytes: '2MB',
    batchWait: '250ms',
    batchFormat: 'lines' as const,
    proxy: 'http://proxy.test:3128',
    retryWindow: '30m',
    retryTiers: ['10s', '1m'],
    oauthTokenUrl: 'https://id.test/token',
    oauthClientId: 'postrider',
    oauthScope: 'calls',
    oauthAudience: 'https://api.test/',
    oauthClientAuth: 'client_secret_post' as const,
    order: 'strict' as const,
    orderLimit: 5,
    orderWait: '10m',
  }
  assert.deepEqual(editOptions(defaultOptions, set), set)
  assert.deepEqual(editOptions(set, {}), set)
  assert.deepEqual(editOptions(set, defaultOptions), defaultOptions)
})

test('an expression without call, or with one =, gets a hint', () => {
  const fault = (where: string) => optionsFaults({ where })[0]!.message
  assert.match(fault('properties.total > 1'), /Unknown variable: properties; write call\.properties$/)
  assert.match(fault("call.event = 'Paid'"), /Unexpected character: =; write == to compare$/)
  assert.doesNotMatch(fault('call.propertis.total > 1'), /write/)
})

test('a proxy is an http or https URL of a host alone, without a login that others could read, or none', () => {
  const faults = (proxy: string) =>
    optionsFaults({ proxy }).map(({ field, message }) => `${field}: ${message}`)
  for (const proxy of ['none', 'http://proxy.test', 'https://proxy.test:3129/', 'http://[::1]:3128'])
    assert.deepEqual(faults(proxy), [], proxy)
  const login =
    'proxy: the proxy holds a user or a password, which all who see the settings would see: only WEBHOOK_PROXY takes them'
  const noUrl = 'proxy: the proxy is not the URL of a proxy, such as http://proxy.example.com:3128'
  const more = 'proxy: the proxy has more behind its host and port'
  assert.deepEqual(faults('http://me:p4ss@proxy.test:3128'), [login])
  assert.deepEqual(faults('http://me@proxy.test:3128'), [login])
  assert.deepEqual(faults('http://:p4ss@proxy.test/x'), [more, login])
  for (const proxy of [
    '',
    'NONE',
    'proxy.test:3128',
    'socks5://proxy.test',
    'http:proxy.test',
    'http://a b/',
  ])
    assert.deepEqual(faults(proxy), [noUrl], proxy)
  for (const proxy of ['http://proxy.test/x', 'http://proxy.test?x', 'http://proxy.test/#x'])
    assert.deepEqual(faults(proxy), [more], proxy)
  assert.deepEqual(faults(`http://${'x'.repeat(300)}`), [
    'proxy: the proxy is 307 characters long, at most 300 are allowed',
  ])
})
