import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { operationalCall } from '../../../src/core/operational/operational-event.ts'
import { mailOf, type Mail, type MailAnswer, type MailedAlert } from '../../../src/operators/alerts/mail.ts'
import {
  MailQueue,
  maxMailsWaiting,
  type MailOutcome,
  type MailTimes,
} from '../../../src/operators/alerts/mail-queue.ts'
import { until } from '../../support/until.ts'

const call = (id: string): AnalyticsCall =>
  operationalCall(
    {
      ...{ name: 'Endpoint Down', identity: id, cause: `destination:${id}:down`, at: 0, destination: id },
      properties: { urlId: 'u1', lastResponse: { status: 503, detail: 'status 503' } },
    },
    `postrider-${id}`,
    'https://c.example',
  )

function rig(
  t: TestContext,
  answer: (mail: Mail, to: readonly string[]) => MailAnswer,
  times: Partial<MailTimes> = {},
  alerts: MailedAlert[] = [{ id: null, to: ['b@example.com'], events: null }],
) {
  const recipients: (readonly string[])[] = []
  const sent: Mail[] = []
  const counts: MailOutcome[] = []
  const lines: string[] = []
  const note = (level: string) => (message: string) => void lines.push(`${level} ${message}`)
  const clock = { now: 0 }
  const queue = new MailQueue({
    mailer: {
      ...{ server: 'mail:25', from: 'a@example.com', to: [] },
      async send(mail, to) {
        await new Promise(setImmediate)
        sent.push(mail)
        recipients.push(to)
        return answer(mail, to)
      },
    },
    alerts: () => alerts,
    log: { info: note('info'), warn: note('warn'), error: note('error') },
    count: (outcome) => counts.push(outcome),
    times: { initialMs: 1, maxMs: 2, giveUpMs: 10_000, ...times },
    now: () => clock.now,
  })
  const stop = new AbortController()
  const start = () => {
    const ended = queue.run(stop.signal)
    t.after(async () => {
      stop.abort()
      await ended
    })
  }
  return { queue, sent, recipients, counts, lines, clock, start }
}

const taken: MailAnswer = { outcome: 'taken', detail: '250 ok' }
const away: MailAnswer = { outcome: 'failed', detail: 'connect ECONNREFUSED' }

test('mails are sent in order, and one that waits already is not added again', async (t) => {
  const { queue, sent, counts, start } = rig(t, () => taken)
  queue.add([call('a'), call('b')])
  queue.add([call('b'), call('c')])
  assert.equal(queue.waiting.length, 3)
  start()
  await until(() => queue.waiting.length === 0)
  queue.add([call('d')])
  await until(() => queue.waiting.length === 0)
  assert.deepEqual(
    sent.map(({ id }) => id),
    ['postrider-a', 'postrider-b', 'postrider-c', 'postrider-d'],
  )
  assert.deepEqual(counts, Array(4).fill('taken'))
})

test('while the server is away mails are tried again, and it is said once, and once more when it is back', async (t) => {
  let isAway = true
  const { queue, sent, lines, start } = rig(t, () => (isAway ? away : taken))
  queue.add([call('a'), call('b')])
  start()
  await until(() => sent.length >= 5)
  isAway = false
  await until(() => queue.waiting.length === 0)
  assert.deepEqual(lines, [
    'warn mails are not sent for now, and tried again: connect ECONNREFUSED',
    'info mails are sent again',
  ])
})

test('what nobody gets is counted and logged, and the next mail says how many', async (t) => {
  let answer: MailAnswer = { outcome: 'refused', detail: '550 no such user' }
  const { queue, sent, counts, lines, clock, start } = rig(t, () => answer)
  queue.add([call('a')])
  start()
  await until(() => queue.waiting.length === 0)
  answer = away
  queue.add([call('b')])
  await until(() => sent.length >= 3)
  clock.now = 10_000
  await until(() => queue.waiting.length === 0)
  answer = taken
  queue.add([call('c'), call('d')])
  await until(() => queue.waiting.length === 0)
  assert.deepEqual(counts, ['refused', 'expired', 'taken', 'taken'])
  assert.deepEqual(
    lines.filter((line) => line.startsWith('error')),
    [
      'error a mail was not sent: [Postrider] Down: a (u1): status 503: 550 no such user',
      'error a mail was not sent: [Postrider] Down: b (u1): status 503: connect ECONNREFUSED',
    ],
  )
  const [third, fourth] = sent.slice(-2)
  assert.match(third!.text, /2 earlier mails could not be sent/)
  assert.doesNotMatch(fourth!.text, /could not be sent/)
})

test('beyond what may wait the oldest is given up, and nothing waits for room', (t) => {
  const { queue, counts, lines } = rig(t, () => taken)
  queue.add(Array.from({ length: maxMailsWaiting + 2 }, (_, index) => call(`d${index}`)))
  assert.equal(queue.waiting.length, maxMailsWaiting)
  assert.equal(queue.waiting[0]!.messageId, 'postrider-d2')
  assert.deepEqual([counts, lines.length], [['omitted', 'omitted'], 2])
})

test('a mail has the sentence as its subject, the link and the facts, and is of the thread of its cause', () => {
  const { subject, text, id, thread } = mailOf(call('crm'))
  assert.equal(subject, '[Postrider] Down: crm (u1): status 503')
  assert.equal(id, 'postrider-crm')
  assert.match(
    text,
    /^Down: crm \(u1\): status 503\n\nhttps:\/\/c\.example\/destinations\/crm\n\nEndpoint Down at /,
  )
  assert.match(text, /^cause: destination:crm:down$/m)
  assert.equal(thread, mailOf(call('crm'), 3).thread)
  assert.notEqual(thread, mailOf(call('shop')).thread)
})

const two: MailedAlert[] = [
  { id: 'ops', to: ['ops@example.com', 'lead@example.com'], events: null },
  { id: 'audits', to: ['audits@example.com'], events: ['Audit Failed'] },
]

test('each alert gets its own events at its own addresses, and where nobody wants one nothing waits', async (t) => {
  const { queue, recipients, start } = rig(t, () => taken, {}, two)
  assert.equal(queue.add([call('a'), { ...call('b'), event: 'Audit Failed' }]), true)
  start()
  await until(() => queue.waiting.length === 0)
  assert.deepEqual(recipients.map((to) => to[0]).toSorted(), [
    'audits@example.com',
    'ops@example.com',
    'ops@example.com',
  ])
  assert.ok(recipients.every((to) => to.length === (to[0] === 'ops@example.com' ? 2 : 1)))
  const { queue: another } = rig(t, () => taken, {}, [two[1]!])
  assert.equal(another.add([call('c')]), false, 'nobody is told: an audit says it again')
  assert.deepEqual(another.waiting, [])
})

test('an alert whose addresses are put off holds up no other, and a console that takes over mails it alone', async (t) => {
  const alerts: MailedAlert[] = ['ops', 'slow'].map((id) => ({ id, to: [`${id}@example.com`], events: null }))
  const greylisted = (_: Mail, [to]: readonly string[]) => (to === 'slow@example.com' ? away : taken)
  const first = rig(t, greylisted, {}, alerts)
  first.queue.add([call('a'), call('b')])
  first.start()
  await until(() => first.counts.length === 2)
  assert.deepEqual(
    first.queue.waiting.map(({ messageId, mailTo }) => [messageId, mailTo]),
    [
      ['postrider-a', ['slow']],
      ['postrider-b', ['slow']],
    ],
  )
  assert.match(first.lines[0]!, /^warn mails of alert "slow" are not sent for now/)
  const second = rig(t, () => taken, {}, alerts)
  second.queue.add(JSON.parse(JSON.stringify(first.queue.waiting)) as AnalyticsCall[])
  second.start()
  await until(() => second.queue.waiting.length === 0)
  assert.deepEqual(second.recipients, [['slow@example.com'], ['slow@example.com']])
})

test('what waits for an alert that was removed is dropped and said, and is no loss', async (t) => {
  const alerts: MailedAlert[] = [{ id: 'ops', to: ['ops@example.com'], events: null }]
  const { queue, sent, counts, lines, start } = rig(t, () => taken, {}, alerts)
  queue.add([call('a')])
  alerts.length = 0
  start()
  await until(() => queue.waiting.length === 0)
  assert.deepEqual([sent, counts], [[], []])
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^info a mail that waited is not sent, for nobody is to get it now: \S/)
})
