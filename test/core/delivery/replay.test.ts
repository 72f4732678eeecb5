import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { planReplay } from '../../../src/core/delivery/replay.ts'
import { type Destination, noLogin } from '../../../src/core/settings/settings.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { deadLetter, delivery } from '../../support/replay/dead-letters.ts'

const now = Date.UTC(2026, 1, 1)
const crm: Destination = {
  id: 'crm',
  name: 'CRM',
  type: 'Webhooks',
  sourceIds: ['shop'],
  urls: ['u2', 'u5'].map((id) => ({ id, url: `https://${id}.example/`, headers: [], goneAt: null })),
  sharedSecret: null,
  earlierSecret: null,
  login: noLogin,
  templateSecrets: [],
  pause: null,
  endedPauses: [],
  options: defaultOptions,
  enabled: true,
}
const terms = { now, owner: 'replay/0-1', topics: topicNames(''), destination: crm }

test('a delivery starts over, at every current URL of its destination, with the same id and body', () => {
  const failed = delivery('m1')
  const planned = planReplay(deadLetter({ delivery: failed }), terms)
  assert.deepEqual(planned, {
    kind: 'delivery',
    record: {
      ...failed,
      endpointIds: ['u2', 'u5'],
      attempts: 0,
      timesScheduled: 0,
      firstAttemptAt: null,
      firstScheduledAt: now,
      notBefore: null,
      outcomes: [],
      lastResponse: null,
      lastExchange: null,
      scheduledAt: now,
      owner: 'replay/0-1',
      from: null,
    },
  })
})

test('what could not be rendered goes as its call, to be rendered again, for its destination alone', () => {
  const failed = delivery('m1')
  const planned = planReplay(deadLetter({ reason: 'unrenderable', delivery: failed }), terms)
  const { topic, partition, offset } = failed.origin
  assert.deepEqual(planned, {
    kind: 'run',
    record: {
      destinationId: 'crm',
      urlId: null,
      endpointIds: ['u2', 'u5'],
      calls: { topic, partition, runs: [{ start: offset, end: offset + 1 }] },
      timesScheduled: 0,
      firstScheduledAt: now,
      scheduledAt: now,
      owner: 'replay/0-1',
      from: null,
    },
  })
})

test('a delivery for an unknown destination keeps the URLs of its record', () => {
  const planned = planReplay(deadLetter({ delivery: delivery('m1') }), { ...terms, destination: null })
  assert.deepEqual(planned.kind === 'delivery' && planned.record.endpointIds, ['u2'])
})

test('a delivery to a disabled destination is refused, because it would only be skipped', () => {
  const planned = planReplay(deadLetter({ delivery: delivery('m1') }), {
    ...terms,
    destination: { ...crm, enabled: false },
  })
  assert.deepEqual(planned, { kind: 'refused', why: 'destination crm is disabled; enable it first' })
})

test('a record that never became a delivery is replayed unchanged, and only to a topic of this deployment', () => {
  const raw = Buffer.from([0, 1, 2])
  const rawKey = Buffer.from('ann')
  const undecodable = deadLetter({ reason: 'undecodable', raw, rawKey })
  assert.deepEqual(planReplay(undecodable, terms), {
    kind: 'raw',
    topic: 'analytics.calls',
    key: rawKey,
    value: raw,
  })
  const elsewhere = planReplay(
    { ...undecodable, origin: { topic: 'payments', partition: 0, offset: 1, appendedAt: null } },
    terms,
  )
  assert.deepEqual(elsewhere, {
    kind: 'refused',
    why: 'it came from payments, which this deployment does not read',
  })
})

test('a body that was too large to keep or to pass on is refused', () => {
  const kinds = [
    deadLetter({ reason: 'too_large', omittedBytes: 5_000_000, omittedSha256: 'ab' }),
    deadLetter({
      reason: 'too_large',
      delivery: delivery('m1', { body: new Uint8Array(0) }),
      omittedBytes: 7,
    }),
    deadLetter({ reason: 'too_large', delivery: delivery('m1') }),
    deadLetter({ reason: 'undecodable' }),
  ]
  assert.deepEqual(
    kinds
      .map((deadLetter) => planReplay(deadLetter, terms))
      .map((planned) => planned.kind === 'refused' && planned.why),
    [
      'its 5000000 bytes were too large to keep',
      'its 7 bytes were too large to keep',
      'it is too large for a retry topic',
      'its record had no value',
    ],
  )
})

test('a delivery of one URL is replayed to that URL alone, and refused once the URL is removed', () => {
  const deadLetterOf = (urlId: string) => {
    const { messageId, destinationId } = delivery('m:1')
    return deadLetter({ delivery: { ...delivery('m:1'), id: `${messageId}:${destinationId}:${urlId}` } })
  }
  const planned = planReplay(deadLetterOf('u5'), terms)
  assert.deepEqual(planned.kind === 'delivery' && planned.record.endpointIds, ['u5'])
  assert.deepEqual(planReplay(deadLetterOf('u1'), terms), {
    kind: 'refused',
    why: 'its URL, u1, was taken out of destination crm',
  })
})
