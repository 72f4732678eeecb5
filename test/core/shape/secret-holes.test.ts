import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { defaultOptions, type OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { bodyForPeople, bodyWithSecrets, secretsOf } from '../../../src/core/shape/secret-holes.ts'
import { bodyFaults, Shape, type Shaped } from '../../../src/core/shape/shape.ts'
import { bodyToSend } from '../../../src/forwarder/plan/destination-runtime.ts'
import { someCall } from '../../support/calls/calls.ts'

const secrets = new Map([
  ['key', 'a"b\\c &+=%e'],
  ['other', 'not-named'],
])

function rendered(body: string, edit: OptionsEdit = {}, call: Partial<AnalyticsCall> = {}) {
  const options = { ...defaultOptions, body: { all: body }, ...edit } as Shaped['options']
  return new Shape({ id: 'x', name: 'X', urls: [], options }, () => '').render(someCall(call), 'm-1:x')
}

function sent(...given: Parameters<typeof rendered>): string {
  const { body, filled } = rendered(...given)
  return Buffer.from(bodyToSend({ body: Buffer.from(body), filled }, secrets)).toString()
}

test('a body is rendered with the names of its secrets, and sent with their texts as JSON and forms write them', () => {
  const template =
    '{"key":"${secret.key}","text":"k=${secret.key}; ${call.event}","deep":[{"k":"${secret.key}"}]}'
  const text = secrets.get('key')!
  const filled = { key: text, text: `k=${text}; Order Completed`, deep: [{ k: text }] }
  for (const contentType of ['json', 'form'] as const) {
    const { body, filled: named } = rendered(template, { contentType })
    assert.ok(!body.includes('a"b') && !body.includes('a%22b'), body)
    assert.deepEqual(secretsOf(named), ['key'])
  }
  assert.deepEqual(JSON.parse(sent(template)), filled)
  const fields = new URLSearchParams(sent(template, { contentType: 'form' }))
  assert.deepEqual(Object.fromEntries(fields), {
    ...{ key: filled.key, text: filled.text, deep: JSON.stringify(filled.deep) },
  })
  assert.deepEqual(JSON.parse(bodyForPeople(rendered(template).body)), {
    ...{ key: '${secret.key}', text: 'k=${secret.key}; Order Completed', deep: [{ k: '${secret.key}' }] },
  })
  assert.match(bodyForPeople(rendered(template, { contentType: 'form' }).body), /^key=\$\{secret\.key\}&/)
})

test('nothing that a call holds is taken for a secret, in whatever spelling', () => {
  const mark = '\ufdd0${secret.key}\ufdd1'
  const escaped = '\\uFDD0${secret.key}\\ufdd1'
  const percent = '%EF%B7%90%24%7Bsecret.key%7D%EF%B7%91'
  const properties = `{"raw":"${mark}","escaped":"${escaped}","percent":"${percent}","kept":"\\\\ufdd0 \\u00e9"}`
  const template =
    '{"k":"${secret.key}","event":"${call.event}","all":"${call.properties}","in":"a ${call.properties}","one":"${call.properties.escaped}"}'
  for (const contentType of ['json', 'form'] as const) {
    const body = sent(template, { contentType }, { event: mark, properties })
    const value = (
      contentType === 'json' ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body))
    ) as {
      [K in 'k' | 'event' | 'one' | 'in']: string
    } & { all: unknown }
    const all = (typeof value.all === 'string' ? JSON.parse(value.all) : value.all) as Record<string, string>
    assert.equal(value.k, secrets.get('key'))
    assert.equal(value.event, '\ufffd${secret.key}\ufffd')
    assert.equal(value.one, '\ufffd${secret.key}\ufffd')
    assert.equal(all.raw, '\ufffd${secret.key}\ufffd')
    assert.equal(all.escaped, '\ufffd${secret.key}\ufffd')
    assert.equal(all.percent, percent)
    assert.equal(all.kept, '\\ufdd0 é')
    assert.equal(body.split(contentType === 'json' ? 'a\\"b' : 'a%22b').length, 2, body)
  }
  // Of a template without secrets, or of one that another body had: not even what looks as one.
  assert.equal(
    (JSON.parse(sent('{"event":"${call.event}"}', {}, { event: mark })) as { event: string }).event,
    mark,
  )
  assert.equal(
    (JSON.parse(sent('{"k":"${secret.other}","event":"\ufdd0${secret.other}\ufdd1"}')) as { k: string }).k,
    'not-named',
  )
})

test('a secret is a hole by itself, and part of no expression', () => {
  assert.deepEqual(bodyFaults('{"a":"${secret.key}","b":"Bearer ${ secret.key }"}'), [])
  for (const hole of ['secret.key + "x"', 'size(secret.key)', 'secret', 'secret.my-key', 'secret["key"]']) {
    const [fault] = bodyFaults(JSON.stringify({ a: `\${${hole}}` }))
    assert.match(fault ?? '', /a secret is a hole by itself, \$\{secret\.NAME\}/, hole)
  }
})

test('a secret that is not given leaves its name', () => {
  const { body } = rendered('{"k":"${secret.key}"}')
  assert.equal(bodyWithSecrets(body, new Map()), body)
})
