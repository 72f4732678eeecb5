import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { renderBody } from '../../../src/core/call/body.ts'
import { bodyFaults, Shape, type Shaped } from '../../../src/core/shape/shape.ts'
import { defaultOptions, type OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { filledPath, parseRequestUrl, requestUrlFaults } from '../../../src/core/shape/request-url.ts'
import { filledHeader, parseTemplate, Unrenderable } from '../../../src/core/shape/text-template.ts'
import { someCall } from '../../support/calls/calls.ts'

interface Given extends OptionsEdit {
  url?: string
  /** In a header. */
  holes?: string[]
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

function shapeOf({ url = 'https://api.example.com/hook', holes = [], ...options }: Given): Shape {
  const destination: Shaped = {
    id: 'crm',
    name: 'The CRM',
    urls: [{ id: 'u1', url, headers: [{ holes }] }],
    options: { ...defaultOptions, ...options } as Shaped['options'],
  }
  return new Shape(destination, sha256)
}

const rendered = (given: Given, call: Partial<AnalyticsCall> = {}) =>
  shapeOf(given).render(someCall(call), 'm-1:crm')

const bodyOf = (template: unknown, call: Partial<AnalyticsCall> = {}, options: OptionsEdit = {}): unknown =>
  JSON.parse(rendered({ ...options, body: { all: JSON.stringify(template) } }, call).body)

const why = (given: Given, call: Partial<AnalyticsCall> = {}): string => {
  try {
    rendered(given, call)
  } catch (error) {
    assert.ok(error instanceof Unrenderable)
    return error.message
  }
  throw new Error('it was rendered')
}

const order: Partial<AnalyticsCall> = {
  properties:
    '{"total":12.5,"id":12345678901234567890,"items":[{"sku":"a"}],"note":"a/b \\"c\\"","gone":null}',
}

test('without a template the body is that of the documents, byte for byte', () => {
  const call = someCall(order)
  assert.equal(rendered({}, order).body, renderBody(call))
  assert.ok(shapeOf({}).isCommon)
  assert.ok(!shapeOf({ drop: ['context.ip'] }).isCommon)
})

test('a text that is one hole takes the value’s own type, and its key is left out where the call has none', () => {
  assert.deepEqual(
    bodyOf(
      {
        total: '${call.properties.total}',
        all: '${call.properties}',
        at: '${call.timestamp}',
        none: '${call.properties.nothing}',
        deep: '${call.properties.nothing.at.all}',
        anonymous: '${call.anonymousId}',
        gone: '${call.properties.gone}',
        list: ['${call.properties.nothing}', '${call.properties.items[0].sku}'],
        plain: [1, true, null, 'x'],
      },
      order,
    ),
    {
      total: 12.5,
      all: JSON.parse(order.properties!),
      at: '2026-01-02T03:04:05.006Z',
      gone: null,
      list: ['a'],
      plain: [1, true, null, 'x'],
    },
  )
})

test('in any other text a value is written as text, and one that is not there as nothing', () => {
  assert.deepEqual(
    bodyOf(
      {
        text: '${call.event}: ${call.properties.total} of ${call.properties.items}, ${call.properties.nothing}.',
        quoted: 'it says ${call.properties.note}',
        literal: 'costs $${total} $5',
      },
      order,
    ),
    {
      text: 'Order Completed: 12.5 of [{"sku":"a"}], .',
      quoted: 'it says a/b "c"',
      literal: 'costs ${total} $5',
    },
  )
})

test('whole numbers keep all of their digits, in the call and in the template', () => {
  const { body } = rendered(
    { body: { all: '{"a":"${call.properties.id}","b":98765432109876543210}' } },
    order,
  )
  // Beyond 64 bits CEL has doubles.
  assert.match(body, /"b":98765432109876543210/)
  const exact = rendered(
    { body: { all: '["${call.properties.id}"]' } },
    { properties: '{"id":12345678901234567}' },
  )
  assert.equal(exact.body, '[12345678901234567]')
})

test('the functions of templates give JSON, times, lower case and SHA-256', () => {
  assert.deepEqual(
    bodyOf(
      {
        json: '${json(call.properties.items)}',
        iso: '${iso(1767323045678)}',
        unix: '${unix(call.timestamp)}',
        lower: '${lower(call.event)}',
        hash: '${sha256("a" + call.userId)}',
        id: '${delivery.id} ${destination.id} ${destination.name}',
      },
      order,
    ),
    {
      json: '[{"sku":"a"}]',
      iso: '2026-01-02T03:04:05.678Z',
      unix: 1767323045,
      lower: 'order completed',
      hash: sha256('au-1'),
      id: 'm-1:crm crm The CRM',
    },
  )
})

test('a template is for one type or for all, and a delete keeps its own body unless one is for it', () => {
  const body = { all: '{"for":"all"}', page: '{"for":"page"}' }
  assert.equal(rendered({ body }).body, '{"for":"all"}')
  assert.equal(rendered({ body }, { type: 'page', event: null }).body, '{"for":"page"}')
  const deletion = { type: 'delete', event: null } as const
  assert.equal(rendered({ body }, deletion).body, renderBody(someCall(deletion)))
  assert.equal(rendered({ body: { ...body, delete: '{"for":"delete"}' } }, deletion).body, '{"for":"delete"}')
})

test('a template sees a call without what the destination does not get', () => {
  const template = { all: '${call.properties}', id: '${call.properties.id}' }
  assert.deepEqual(bodyOf(template, order, { drop: ['properties.id', 'properties.note'] }), {
    all: { total: 12.5, items: [{ sku: 'a' }], gone: null },
  })
})

test('a form has a field for each key', () => {
  const body = {
    all: '{"a":"${call.event}","b":"${call.properties.items}","c":1,"d":null,"e":12345678901234567890}',
  }
  assert.equal(
    rendered({ body, contentType: 'form' }, order).body,
    'a=Order+Completed&b=%5B%7B%22sku%22%3A%22a%22%7D%5D&c=1&d=&e=12345678901234567890',
  )
  assert.match(rendered({ contentType: 'form' }, order).body, /^version=1&type=track&userId=u-1&/)
})

test('what has no JSON, and what takes too many steps, makes a call unrenderable, without its content in the reason', () => {
  const body = (hole: string) => ({ body: { all: JSON.stringify({ a: `\${${hole}}` }) } })
  assert.match(why(body('call.event + 1.0')), /^call\.event \+ 1\.0: no_such_overload at line 1/)
  assert.match(why(body('duration("1h")')), /cannot be written as JSON/)
  const text = 'secret'.repeat(40_000)
  const long = why(body('lower(call.properties.text)'), { properties: JSON.stringify({ text }) })
  assert.match(long, /more than 100000 steps/)
  assert.ok(!long.includes('secret'))
})

test('a value that is nested thousands deep makes a call unrenderable, in a template and in a form', () => {
  const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  const call = { properties: deep }
  assert.match(
    why({ body: { all: '{"a":"${call.properties.a}"}' } }, call),
    /JSON \(too_deep\)|cannot be read/,
  )
  assert.match(why({ contentType: 'form' }, call), /nested too deep/)
})

test('a template that cannot be used is refused with what is wrong', () => {
  const wrong: Record<string, RegExp> = {
    '{"a":': /^is not JSON/,
    '{"a":"${call.event"}': /a hole that begins with \$\{ is not closed/,
    '{"a":"${cal.event}"}': /the hole \$\{cal\.event\}: .*Unknown variable: cal/,
    '{"a":"${call}"}': /name what of it, such as call\.event/,
    '{"${call.event}":1}': /a hole in the key/,
    '{"a":"${delivery.attempt}"}': /the same at every attempt/,
  }
  for (const [text, message] of Object.entries(wrong)) assert.match(bodyFaults(text).join(), message, text)
  assert.deepEqual(bodyFaults('{"a":"${ {\'x\': call.event}.x }","b":"${call.properties[\'}\']}"}'), [])
})

const path = (url: string, call: Partial<AnalyticsCall> = {}): string => {
  const { filled } = rendered({ url }, call)
  return filledPath(parseRequestUrl(url)!.url!.path!, filled!, 3)
}

test('values in a URL are percent-encoded whole, and the place where requests go is the same for all', () => {
  const url = 'https://api.example.com/u/${call.userId}/e?of=${call.properties.note}&n=${delivery.attempt}#x'
  assert.equal(
    path(url, { ...order, userId: '../a b?c#d&e=ü' }),
    '/u/..%2Fa%20b%3Fc%23d%26e%3D%C3%BC/e?of=a%2Fb%20%22c%22&n=3',
  )
  const { base } = parseRequestUrl(url)!.url!
  assert.equal(base.origin, 'https://api.example.com')
})

test('property: no value leads a request out of its part of the path or the query', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), (one, two) => {
      const filled = [
        { hole: 'call.userId', value: one },
        { hole: 'call.event', value: two },
      ]
      const template = parseRequestUrl('https://h.example/a/${call.userId}/b?c=${call.event}')!.url!.path!
      let made: string
      try {
        made = filledPath(template, filled, 1)
      } catch (error) {
        assert.ok(error instanceof Unrenderable)
        return
      }
      const url = new URL(`https://h.example${made}`)
      assert.equal(url.pathname, made.split('?')[0])
      assert.equal(decodeURIComponent(url.pathname.split('/')[2]!), one.toWellFormed())
      assert.equal(url.pathname.split('/').length, 4)
      assert.deepEqual([...url.searchParams], [['c', two.toWellFormed()]])
    }),
  )
})

test('a call without a value that the URL needs is unrenderable, and so is one that would leave its path', () => {
  const url = 'https://api.example.com/u/${call.anonymousId}/e'
  assert.match(why({ url }), /^call\.anonymousId: the call has no such value/)
  for (const anonymousId of ['.', '..']) assert.match(why({ url }, { anonymousId }), /"\." or "\.\."/)
  assert.equal(path(url, { anonymousId: '...' }), '/u/.../e')
  assert.match(why({ url }, { anonymousId: 'x'.repeat(2_049) }), /at most 2048 characters/)
})

test('where each URL has deliveries of its own, what another URL needs is nothing to it', () => {
  const urls = ['https://a.example/${call.anonymousId}', 'https://b.example/'].map((url, index) => ({
    id: `u${index + 1}`,
    url,
    headers: [],
  }))
  const shapeFor = (urlId: string | null) =>
    new Shape({ id: 'crm', name: 'CRM', urls, options: defaultOptions }, sha256, urlId)
  const call = someCall()
  assert.equal(shapeFor('u2').render(call, 'm-1:crm:u2').body, renderBody(call))
  for (const urlId of ['u1', null]) assert.throws(() => shapeFor(urlId).render(call, 'm-1:crm'), Unrenderable)
})

test('holes stand in the path and the query only', () => {
  for (const url of [
    'https://${call.userId}.example.com/',
    'https://example.com:${call.userId}/',
    '${call.event}://example.com/',
    'https://a${call.userId}@example.com/x',
  ])
    assert.match(requestUrlFaults(url).join(), /only the path and the query may have holes/, url)
  assert.deepEqual(requestUrlFaults('https://example.com/${ call.userId }?a=${call.properties["x y"]}'), [])
  assert.match(requestUrlFaults('https://example.com/a b/${call.userId}').join(), /white space/)
  assert.match(
    requestUrlFaults('https://example.com/${delivery.attempt + 1}').join(),
    /stands for itself only/,
  )
})

test('a header’s value has no line end, and a header that is one hole is left out where the call has no value', () => {
  const holes = ['call.event', 'call.properties.nothing']
  const { filled } = rendered({ holes })
  assert.deepEqual(filled, [{ hole: 'call.event', value: 'Order Completed' }])
  const header = (text: string) => filledHeader(parseTemplate(text).template!, filled!, 2)
  assert.equal(
    header('e=${call.event}; n=${call.properties.nothing}; a=${delivery.attempt}'),
    'e=Order Completed; n=; a=2',
  )
  assert.equal(header('${call.properties.nothing}'), null)
  for (const event of ['a\r\nX-Evil: 1', 'a\nb', 'snow \u2603'])
    assert.match(why({ holes }, { event }), /line end/)
  assert.equal(rendered({ holes }, { event: 'Grün' }).filled![0]!.value, 'Grün')
})
