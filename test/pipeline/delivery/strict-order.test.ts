import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { appendErasures, appendSuppressions } from '../../support/erasures.ts'
import { startReceiver, type Answer, type ReceivedRequest } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** A forwarder that sends a destination's calls in strict order. */
async function strictly(
  deployment: Deployment,
  forwarder: RunningForwarder,
  urls: string[],
  options: OptionsEdit = {},
): Promise<void> {
  await deployment.destination({ id: 'crm', urls })
  await deployment.settings.execute({
    type: 'update_destination',
    id: 'crm',
    options: { order: 'strict', ...options },
  })
  await connect(deployment, forwarder, { id: 'marker', urls: ['http://127.0.0.1:1/'] })
}

const callsOf = (userId: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) =>
    someCall({ userId, messageId: `${userId}:${from + index}` }),
  )

/** The user and the number of the call that a request is about. */
const aboutOf = ({ headers }: ReceivedRequest): [userId: string, number: number] => {
  const [userId, number] = String(headers['idempotency-key']).split(':')
  return [userId!, Number(number)]
}

const numbersOf = (requests: readonly ReceivedRequest[], userId: string): number[] =>
  requests.map(aboutOf).flatMap(([user, number]) => (user === userId ? [number] : []))

/** Answers 503 to a call of a user for as many times. */
function failing(userId: string, number: number, times: number): (request: ReceivedRequest) => Answer {
  let left = times
  return (request) => {
    const [user, its] = aboutOf(request)
    return { status: user === userId && its === number && left-- > 0 ? 503 : 200 }
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

async function audited(deployment: Deployment): Promise<void> {
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
}

test('a user’s calls arrive in order though one fails three times, and other users’ arrive meanwhile', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', PARTITIONS_CALLS: '2' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  receiver.answer(failing('u', 3, 3))
  await strictly(deployment, forwarder, [receiver.url])
  const others = range(1, 20).map((number) => `o${number}`)
  await deployment.produce([...callsOf('u', 1, 10), ...others.flatMap((userId) => callsOf(userId, 1, 1))])
  await receiver.waitFor(6 + 20)
  await deployment.produce(callsOf('u', 11, 20))
  await receiver.waitFor(20 + 3 + 20, 20_000)
  const { requests } = receiver
  assert.deepEqual(numbersOf(requests, 'u'), [1, 2, 3, 3, 3, ...range(3, 20)])
  const failures = requests.filter((request) => aboutOf(request).join() === 'u,3')
  const between = requests.filter(({ at }) => at > failures[0]!.at && at < failures[1]!.at)
  t.diagnostic(`${between.length} requests between the first two attempts`)
  for (const userId of others) {
    const [request] = requests.filter((each) => aboutOf(each)[0] === userId)
    assert.ok(request!.at < failures[3]!.at, `${userId} waited for another user`)
  }
  // Never early: the delays of the tiers.
  const waits = failures.slice(1).map(({ at }, index) => at - failures[index]!.at)
  assert.ok(waits[0]! >= 300 && waits[1]! >= 600 && waits[2]! >= 600, waits.join())
  await counted(forwarder, dispositions('crm', 'delivered'), 40)
  // Once all have ended, the user's calls go the short way again.
  const parked = () => sampleOf(forwarder, 'postrider_retries_scheduled_total{tier="strict"}')
  await until(async () => {
    const before = parked()
    const count = receiver.requests.length
    await deployment.produce(callsOf('u', 100 + count, 100 + count))
    await receiver.waitFor(count + 1)
    return parked() === before
  }, 20_000)
  await deployment.drained()
  await until(async () => (await auditOf(deployment)).ok)
  await audited(deployment)
})

test('past the number of calls and past the time that may wait, a user is released, counted, and nothing is lost', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s,2s' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  let isWell = false
  receiver.answer((request) => ({ status: !isWell && aboutOf(request)[1] === 1 ? 503 : 200 }))
  await strictly(deployment, forwarder, [receiver.url], { orderLimit: 3 })
  const released = (reason: string) => `postrider_order_released_total{destination="crm",reason="${reason}"}`

  await deployment.produce(callsOf('many', 1, 4))
  await until(() => sampleOf(forwarder, dispositions('crm', 'deferred')) === 3)
  assert.ok(!numbersOf(receiver.requests, 'many').some((number) => number > 1), 'three may wait')
  await until(
    async () => (await auditOf(deployment)).ok,
    10_000,
    'that the audit accounts for what is parked',
  )
  await deployment.produce(callsOf('many', 5, 5))
  await until(() => numbersOf(receiver.requests, 'many').includes(5), 20_000)
  await counted(forwarder, released('order_limit'), 1)
  const arrived = () => numbersOf(receiver.requests, 'many').filter((number) => number > 1)
  assert.deepEqual(arrived(), [2, 3, 4, 5])

  // Only now: on a busy machine the time may be over before the fourth one comes.
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options: { orderWait: '4s' } })
  await connect(deployment, forwarder, { id: 'marker-2', urls: ['http://127.0.0.1:1/'] })
  await deployment.produce(callsOf('late', 1, 2))
  await until(() => numbersOf(receiver.requests, 'late').includes(2), 20_000)
  await counted(forwarder, released('order_wait'), 1)
  const [first, second] = ['late:1', 'late:2'].map((key) =>
    receiver.requests.find(({ headers }) => String(headers['idempotency-key']).startsWith(key)),
  )
  assert.ok(second!.at >= first!.at + 4_000 - 2_000, 'it waited as long as it may, less the next delay')
  isWell = true
  await counted(forwarder, dispositions('crm', 'delivered'), 7, 20_000)
  const line = forwarder.log.find(({ msg }) => msg.startsWith('calls that fail are not waited for'))
  assert.deepEqual([line!.destination, line!.reason], ['crm', 'order_limit'])
  await until(async () => (await auditOf(deployment)).ok)
  await audited(deployment)
})

test('parked calls of an erased user are not sent, those of a suppressed or paused one neither, and the others go on', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '1s' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  let isWell = false
  receiver.answer((request) => ({ status: !isWell && aboutOf(request)[1] === 1 ? 503 : 200 }))
  await strictly(deployment, forwarder, [receiver.url])
  const users = ['erased', 'suppressed', 'other']
  await deployment.produce(users.flatMap((userId) => callsOf(userId, 1, 3)))
  await until(() => sampleOf(forwarder, dispositions('crm', 'deferred')) === 6)
  await appendErasures(deployment, { userId: 'erased' })
  await appendSuppressions(deployment, { userId: 'suppressed' })
  await counted(forwarder, dispositions('crm', 'erased'), 3)
  await counted(forwarder, dispositions('crm', 'skipped'), 3)
  isWell = true
  await until(() => numbersOf(receiver.requests, 'other').includes(3), 20_000)
  for (const userId of ['erased', 'suppressed'])
    assert.deepEqual(new Set(numbersOf(receiver.requests, userId)), new Set([1]))

  isWell = false
  await deployment.produce(callsOf('held', 1, 3))
  await until(() => sampleOf(forwarder, dispositions('crm', 'deferred')) === 8)
  const pause = { pauseId: 'p-1', at: Date.now(), until: null }
  await deployment.settings.execute({ type: 'pause_destination', id: 'crm', ...pause })
  await counted(forwarder, dispositions('crm', 'held'), 3, 20_000)
  assert.deepEqual(new Set(numbersOf(receiver.requests, 'held')), new Set([1]))
  await until(async () => (await auditOf(deployment)).ok)
  await audited(deployment)
})

test('a forwarder that is killed leaves its users blocked for the next one', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '500ms', PARTITIONS_CALLS: '1', PARTITIONS_RETRY: '1' })
  const receiver = await startReceiver(t)
  let isWell = false
  receiver.answer((request) => ({ status: !isWell && aboutOf(request).join() === 'u,1' ? 503 : 200 }))
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options: { order: 'strict' } })
  // Not of the next one, which would send twice what it was sending when it got no CPU for so long.
  const first = await startForwarderProcess(t, deployment, { env: { SESSION_TIMEOUT: '1500ms' } })
  await deployment.produce(callsOf('u', 1, 3))
  await deployment.drained()
  await first.kill()
  await deployment.produce([...callsOf('u', 4, 5), ...callsOf('other', 1, 1)])
  const next = await deployment.forwarder()
  const before = receiver.requests.length
  await until(() => numbersOf(receiver.requests, 'other').length === 1, 20_000)
  // The call that failed is tried by the next one, too.
  await until(() => receiver.requests.length >= before + 3, 20_000)
  assert.deepEqual(new Set(numbersOf(receiver.requests, 'u')), new Set([1]))
  isWell = true
  await until(() => numbersOf(receiver.requests, 'u').includes(5), 20_000)
  assert.deepEqual(
    numbersOf(receiver.requests, 'u').filter((number) => number > 1),
    [2, 3, 4, 5],
  )
  await next.stop()
  await audited(deployment)
})

test('a parked call that was tried already is not tried at once by the next forwarder', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '3s', PARTITIONS_CALLS: '1', PARTITIONS_RETRY: '1' })
  const first = await deployment.forwarder()
  const receiver = await startReceiver(t)
  receiver.answer({ status: 503 }, { status: 429, headers: { 'retry-after': '60' } }, { status: 200 })
  await strictly(deployment, first, [receiver.url])
  await deployment.produce(callsOf('u', 1, 2))
  await receiver.waitFor(2, 20_000)
  await first.stop()
  const stoppedAt = Date.now()
  const next = await deployment.forwarder()
  const [, , third] = await receiver.waitFor(4, 20_000)
  assert.ok(third!.at >= stoppedAt + 3_000, `${third!.at - stoppedAt} ms after the first one had stopped`)
  assert.deepEqual(numbersOf(receiver.requests, 'u'), [1, 1, 1, 2])
  await counted(next, dispositions('crm', 'delivered'), 2)
  await next.stop()
  await audited(deployment)
})

test('forwarders that are killed, and come and go, lose no call and let none overtake another of its user', async (t) => {
  const deployment = await deploy(t, {
    ...{ RETRY_TIERS: '300ms,600ms', SESSION_TIMEOUT: '1500ms' },
    ...{ PARTITIONS_CALLS: '4', PARTITIONS_RETRY: '2' },
  })
  const receiver = await startReceiver(t)
  const accepted = new Set<string>()
  const overtaken: string[] = []
  const tries = new Map<string, number>()
  receiver.answer((request) => {
    const [userId, number] = aboutOf(request)
    const id = `${userId}:${number}`
    if (number > 1 && !accepted.has(`${userId}:${number - 1}`)) overtaken.push(id)
    const nth = (tries.get(id) ?? 0) + 1
    tries.set(id, nth)
    // Every seventh call of a user fails once or twice.
    if ((number + userId.length) % 7 === 0 && nth <= 1 + (number % 2)) return { status: 503, delayMs: 20 }
    accepted.add(id)
    return { status: 200, delayMs: 5 }
  })
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  await deployment.settings.execute({ type: 'update_destination', id: 'crm', options: { order: 'strict' } })
  const users = Array.from({ length: 20 }, (_, index) => `user-${'x'.repeat(index)}`)
  let produced = 0
  const more = async (count: number) => {
    await deployment.produce(
      range(produced + 1, produced + count).flatMap((number) =>
        users.flatMap((userId) => callsOf(userId, number, number)),
      ),
    )
    produced += count
  }
  let running = [await startForwarderProcess(t, deployment), await startForwarderProcess(t, deployment)]
  for (const [round, end] of (['kill', 'terminate', 'kill'] as const).entries()) {
    const before = receiver.requests.length
    await more(20)
    await receiver.waitFor(before + 60 + 70 * round, 30_000)
    const [gone, ...stay] = running
    const next = startForwarderProcess(t, deployment)
    if (end === 'kill') await gone!.kill()
    else gone!.terminate()
    running = [...stay, await next]
  }
  await more(5)
  // Each user has nine or ten calls that fail and are waited for, one after another.
  await until(() => accepted.size === users.length * produced, 120_000, 'that every call is accepted')
  assert.deepEqual(overtaken, [])
  const failed = [...tries].filter(([, count]) => count > 1).length
  t.diagnostic(
    `${accepted.size} calls, ${failed} of them tried more than once, ${receiver.requests.length} requests`,
  )
  await deployment.drained(30_000)
  await until(async () => (await auditOf(deployment)).ok, 30_000, 'that the audit is clean')
  await audited(deployment)
})
