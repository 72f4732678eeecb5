import fc from 'fast-check'
import { callTypes, type AnalyticsCall, type CallType } from '../../../src/core/call/analytics-call.ts'
import { earliestTimestamp, latestTimestamp } from '../../../src/core/timestamp.ts'

// Keys that whole numbers spell are reordered on both sides; top-level keys never are such.
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '","userId":"x', '\\', '"', '{}', '\u0000', '\ud800', '</script>'),
)
const value = fc.oneof(text, fc.jsonValue())
const map = fc.oneof(
  fc.dictionary(text, value).map((members) => JSON.stringify(members)),
  fc.dictionary(text, value).map((members) => ` ${JSON.stringify(members, null, 1)}\n`),
  fc.constantFrom('{"2":3.50,"1":-0,"a":"\\u0026\\/","a":1.0}', '{"a": "\\uD800"}'),
  fc.constant('{}'),
)
const noMap = fc.oneof(
  fc.constantFrom('{},"userId":"x"', '{"a":1}}', '{"a":1', '', '[]', 'null', '{"a":1},{"b":2}', '"'),
  text,
)
// One is enough to make a call invalid, and most tests are of valid ones.
const mapOrNot = fc.oneof({ weight: 24, arbitrary: map }, { weight: 1, arbitrary: noMap })
const id = fc.oneof(
  { weight: 24, arbitrary: text.filter((each) => each !== '') },
  { weight: 1, arbitrary: text },
)
const time = fc.integer({ min: earliestTimestamp, max: latestTimestamp })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
/** As anybody may write one into Kafka: texts that need escapes, and maps of which some are none. */
export const anyCall: fc.Arbitrary<AnalyticsCall> = fc.record({
  messageId: id,
  sourceId: id,
  type: fc.constantFrom<CallType | 'unknown'>(...callTypes, 'unknown'),
  userId: maybe(text),
  anonymousId: maybe(text),
  previousId: maybe(text),
  groupId: maybe(text),
  event: maybe(text),
  name: maybe(text),
  category: maybe(text),
  channel: maybe(text),
  timestamp: time,
  originalTimestamp: maybe(time),
  receivedAt: time,
  sentAt: maybe(time),
  properties: maybe(mapOrNot),
  traits: maybe(mapOrNot),
  context: maybe(mapOrNot),
  integrations: maybe(mapOrNot),
})
