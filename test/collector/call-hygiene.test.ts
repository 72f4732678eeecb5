import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hygieneOf, truncatedAddress, type HygieneOptions } from '../../src/collector/call-hygiene.ts'

const browser = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36'
const crawler = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'

const none: HygieneOptions = { ip: 'keep', bots: 'keep' }
const cleaned = (options: Partial<HygieneOptions>, context: string | null, isBot = false) =>
  hygieneOf({ ...none, ...options }, true, '')!.cleaned(context, isBot)

test('an address loses its last number, or all but its first 48 bits, and what is no address is none', () => {
  const cases: [given: string, left: string | null][] = [
    ['203.0.113.77', '203.0.113.0'],
    ['255.255.255.255', '255.255.255.0'],
    ['2001:db8:85a3:8d3:1319:8a2e:370:7348', '2001:db8:85a3::'],
    ['2001:DB8::1', '2001:db8::'],
    ['::1', '::'],
    ['fe80::1%eth0', 'fe80::'],
    // An IPv4 address, of whose 32 bits the first 48 bits hold none.
    ['::ffff:203.0.113.77', '203.0.113.0'],
    ['203.0.113.77:443', null],
    ['203.0.113.77, 10.0.0.1', null],
    [' 203.0.113.77', null],
    ['203.0.113', null],
    ['3405803853', null],
    ['203.0.113.256', null],
    ['localhost', null],
    ['', null],
  ]
  for (const [given, left] of cases) assert.equal(truncatedAddress(given), left, given)
})

test('property: addresses of one network are one after it, and those of two networks stay two', () => {
  const byte = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(byte, byte, byte, byte, byte, (a, b, c, d, e) => {
      const left = truncatedAddress([a, b, c, d].join('.'))
      assert.equal(left, `${a}.${b}.${c}.0`)
      assert.equal(left, truncatedAddress([a, b, c, e].join('.')))
    }),
  )
  const group = fc.integer({ min: 0, max: 0xffff })
  const groups = (length: number) => fc.array(group, { minLength: length, maxLength: length })
  const textOf = (all: number[]) => all.map((each) => each.toString(16)).join(':')
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 0xffff }),
      groups(2),
      groups(5),
      groups(5),
      (a, [b, c], one, other) => {
        const left = truncatedAddress(textOf([a, b!, c!, ...one]))
        assert.equal(left, truncatedAddress(textOf([a, b!, c!, ...other])))
        assert.equal(left, truncatedAddress(left!))
        assert.notEqual(left, truncatedAddress(textOf([a, b!, c! ^ 1, ...one])))
      },
    ),
  )
})

test('the address of a context is truncated or dropped, and all else keeps its spelling', () => {
  const rest = '"n":1.50,"id":12345678901234567890,"page":{"ip": "192.0.2.1"},"ips" : [ "192.0.2.1" ]'
  const cases: [context: string | null, truncated: string | null, dropped: string | null][] = [
    [`{${rest},"ip":"203.0.113.77"}`, `{${rest},"ip":"203.0.113.0"}`, `{${rest}}`],
    [`{ "ip" : "2001:db8:1:2::3", ${rest} }`, `{"ip" : "2001:db8:1::",${rest}}`, `{${rest}}`],
    // However the key is written, and however often it comes: the last one counts for some readers, the first for others.
    [`{"\\u0069p":"203.0.113.77",${rest}}`, `{"\\u0069p":"203.0.113.0",${rest}}`, `{${rest}}`],
    ['{"ip":"203.0.113.77","ip":"198.51.100.7"}', '{"ip":"203.0.113.0","ip":"198.51.100.0"}', '{}'],
    ['{"ip":"203\\u002e0.113.77"}', '{"ip":"203.0.113.0"}', '{}'],
    // There may be an address in what is none.
    ['{"ip":"203.0.113.77:443","a":1}', '{"a":1}', '{"a":1}'],
    ['{"ip":["203.0.113.77"]}', '{}', '{}'],
    ['{"ip":null}', '{}', '{}'],
    [`{ ${rest} }`, `{ ${rest} }`, `{ ${rest} }`],
    ['{}', '{}', '{}'],
    [null, null, null],
  ]
  for (const [context, truncated, dropped] of cases) {
    assert.equal(cleaned({ ip: 'truncate' }, context), truncated, String(context))
    assert.equal(cleaned({ ip: 'drop' }, context), dropped, String(context))
    assert.equal(cleaned({ bots: 'flag' }, context), context, String(context))
  }
})

test('a bot is flagged whatever its call says, and its address is truncated as well', () => {
  const flagged = (context: string | null) => cleaned({ bots: 'flag' }, context, true)
  assert.equal(flagged(null), '{"bot":true}')
  assert.equal(flagged('{}'), '{"bot":true}')
  assert.equal(flagged('{"n":1.50}'), '{"n":1.50,"bot":true}')
  assert.equal(flagged('{"bot":false,"n":1.50}'), '{"n":1.50,"bot":true}')
  assert.equal(
    cleaned({ ip: 'truncate', bots: 'flag' }, '{"ip":"203.0.113.77"}', true),
    '{"ip":"203.0.113.0","bot":true}',
  )
  // What a call of a browser says of itself is its own business.
  assert.equal(cleaned({ bots: 'flag' }, '{"bot":true}'), '{"bot":true}')
})

/** Whether each context is taken for a bot's, with this header. */
const areBots = (userAgent: string, ...contexts: (string | null)[]) => {
  const hygiene = hygieneOf({ ...none, bots: 'drop' }, true, userAgent)!
  return contexts.map((context) => hygiene.isBot(context))
}
const says = (userAgent: unknown) => JSON.stringify({ n: 1, userAgent })

test('a bot is known by the header, and by the context where there is no header', () => {
  assert.deepEqual(areBots(crawler, null, '{}', says(browser)), [true, true, true])
  assert.deepEqual(areBots(browser, null, says(crawler)), [false, false])
  assert.deepEqual(
    areBots('', null, '{}', says(crawler), says(browser), says(crawler), says(null), says([crawler])),
    [false, false, true, false, true, false, false],
  )
  assert.deepEqual(areBots('', `{"userAgent":"${browser}","user\\u0041gent":"Google\\u0062ot/2.1"}`), [true])
  for (const bot of ['curl/8.5.0', 'python-requests/2.32', `${browser} HeadlessChrome/140.0`, 'bingbot/2.0'])
    assert.deepEqual(areBots(bot, null), [true], bot)
})

test('an app is no bot: its SDK names itself in the header, and the context says who uses it', () => {
  const phone = 'Dalvik/2.1.0 (Linux; U; Android 13; Pixel 7 Build/TQ3A)'
  const headers = [
    'analytics-kotlin/1.19.2',
    'analytics-ios/1.7.3',
    'okhttp/4.9.2',
    'Shop/3 CFNetwork/1490.0.4',
  ]
  for (const header of headers) assert.deepEqual(areBots(header, null, says(phone)), [false, false], header)
  assert.deepEqual(areBots('analytics-kotlin/1.19.2', says(crawler)), [true])
  assert.deepEqual(areBots('', says('okhttp/4.9.2')), [false])
})

test('a source with defaults has nothing done, nor have calls of servers bots', () => {
  assert.equal(hygieneOf(none, true, crawler), null)
  assert.equal(hygieneOf({ ...none, bots: 'drop' }, false, crawler), null)
  const ofServer = hygieneOf({ ip: 'drop', bots: 'drop' }, false, crawler)!
  assert.equal(ofServer.isBot(says(crawler)), false)
  assert.equal(ofServer.cleaned('{"ip":"203.0.113.77"}', false), '{}')
})
