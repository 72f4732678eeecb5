import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  reasonOfState,
  reasonOfWait,
  waitSentence,
  type DestinationNow,
  type UrlNow,
  type WaitingDelivery,
  type WaitReason,
} from '../../../src/core/statistics/waiting-reason.ts'

const clock = (text: string): number => Date.parse(`2026-01-31T${text}:00Z`)
const now = clock('18:45')
const timeText = (at: number): string => new Date(at).toISOString().slice(11, 16)
const sentence = (reason: WaitReason | null): string | null =>
  reason && waitSentence(reason, { now, timeText })

const url = (given: Partial<UrlNow> = {}): UrlNow => ({
  ...{ urlId: 'u1', isGone: false, breaker: 'closed', downSince: null, pausedUntil: null },
  ...{ isWithoutToken: false, lastFailure: null },
  ...given,
})
const down = url({
  ...{ breaker: 'open', downSince: clock('18:19'), pausedUntil: clock('18:46') },
  lastFailure: { outcome: 'status_5xx', status: 500 },
})
const destination = (urls: UrlNow[], word: string = 'delivering', why: string | null = null) =>
  ({ health: { word, why }, urls }) as DestinationNow

const inTier: WaitingDelivery = {
  ...{ urlId: null, isInTier: true, isInOrder: false, dueAt: clock('18:52') },
  ...{ lastAttempt: null, putOff: null },
}
const failedAttempt = { at: clock('18:22'), outcome: 'status_5xx', status: 500 }

test('a delivery that waits says why: what its URL answers since when, and when it is tried next', () => {
  const table: [WaitingDelivery, DestinationNow | null, string | null][] = [
    [inTier, destination([down], 'down'), 'Its URL answers 500 since 18:19; next try 18:52.'],
    [
      { ...inTier, dueAt: clock('18:45') },
      destination([down], 'down'),
      'Its URL answers 500 since 18:19; next try 18:46.',
    ],
    [
      { ...inTier, dueAt: clock('18:30') },
      destination([url()]),
      'It was put off without an attempt; its next try is due now.',
    ],
    [
      inTier,
      destination([{ ...down, lastFailure: { outcome: 'timeout', status: null } }], 'down'),
      'Its URL does not answer in time since 18:19; next try 18:52.',
    ],
    [
      inTier,
      destination([down, { ...down, urlId: 'u2', downSince: clock('18:10') }], 'down'),
      'Each of its URLs is down since 18:10: one answers 500; next try 18:52.',
    ],
    // One of its URLs takes calls, and it is not about the other one.
    [
      { ...inTier, urlId: 'u2' },
      destination([down, url({ urlId: 'u2' })]),
      'It was put off without an attempt; next try 18:52.',
    ],
    [
      { ...inTier, lastAttempt: failedAttempt },
      destination([url()]),
      'Its URL answered 500 at 18:22; next try 18:52.',
    ],
    [
      { ...inTier, lastAttempt: failedAttempt, putOff: 'too many retries fail' },
      null,
      'It was put off without an attempt: too many retries fail; next try 18:52.',
    ],
    [
      inTier,
      destination([url({ isWithoutToken: true, downSince: clock('18:19') })], 'down', 'no_token'),
      'No OAuth2 token is to be had for its login since 18:19; next try 18:52.',
    ],
    [
      inTier,
      destination([url({ breaker: 'paused', pausedUntil: clock('19:10') })], 'asked_to_wait'),
      'Its URL asked for a pause (Retry-After); next try 19:10.',
    ],
    [
      { ...inTier, isInOrder: true },
      destination([down], 'down'),
      'It waits for an earlier call of its user, which has failed.',
    ],
    [
      inTier,
      destination([down], 'held'),
      'Its destination is paused: it is held when it comes due at 18:52.',
    ],
    [inTier, destination([down], 'not_known', 'no_forwarder'), 'No forwarder is running: nothing is sent.'],
  ]
  for (const [delivery, of, text] of table) assert.equal(sentence(reasonOfWait(delivery, of)), text)
})

test('what was not taken from Kafka yet waits for nothing but somebody who reads it', () => {
  const open: WaitingDelivery = { ...inTier, isInTier: false, dueAt: null }
  assert.equal(reasonOfWait(open, destination([down], 'down')), null)
  assert.equal(reasonOfWait(open, null), null)
  assert.equal(
    sentence(reasonOfWait(open, destination([down], 'not_known', 'nothing_read'))),
    'No forwarder reads calls yet: nothing is sent.',
  )
})

test('a destination says what keeps its calls, and says nothing while one of its URLs takes them', () => {
  assert.equal(
    sentence(reasonOfState(destination([down], 'down'))),
    'Its URL answers 500 since 18:19; next try 18:46.',
  )
  const other = { ...down, urlId: 'u2', isGone: true }
  assert.equal(
    sentence(reasonOfState(destination([down, other], 'down'))),
    'Its URL answers 500 since 18:19; next try 18:46.',
    'a URL that is gone is not waited for',
  )
  assert.equal(reasonOfState(destination([down, url({ urlId: 'u2' })])), null)
  assert.equal(reasonOfState(destination([])), null)
})
