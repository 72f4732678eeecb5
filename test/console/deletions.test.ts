// Deletion requests on topics in memory, which end at any step; test/cli/deletions/deletions.test.ts has the real ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { maxUsersOfRequest } from '../../src/core/erasure/deletion.ts'
import type { SettingsState } from '../../src/core/settings/settings.ts'
import { PostriderError } from '../../src/errors.ts'
import {
  listDeletions,
  requestIdOf,
  showDeletion,
  type DeletionPorts,
  type StoredErasure,
} from '../../src/operators/deletions/history.ts'
import { requestDeletion, resumeDeletions } from '../../src/operators/deletions/request.ts'

const settings = {
  sources: new Map(['shop', 'quiet', 'blog'].map((id) => [id, { id, enabled: true }])),
  destinations: new Map([
    ['crm', { id: 'crm', sourceIds: ['shop', 'blog'], enabled: true }],
    ['mail', { id: 'mail', sourceIds: ['shop'], enabled: true }],
    ['off', { id: 'off', sourceIds: ['quiet'], enabled: false }],
  ]),
} as unknown as SettingsState

const startedAt = 1_767_000_000_000

async function* inOrder<T>(records: readonly T[]): AsyncGenerator<T, void, undefined> {
  for (const record of records) yield await Promise.resolve(record)
}

/** What lies in the topics. */
class Topics {
  erasures: StoredErasure[] = []
  calls: AnalyticsCall[] = []
  requests = 0

  /**
   * @param steps how many writes work; the one after them fails
   * @param arrives how much of what the failing write was to write is there all the same
   */
  ports(steps = Infinity, arrives = 0, onStep: () => Promise<void> = async () => {}): DeletionPorts {
    let left = steps
    const step = async <T>(records: readonly T[], to: (record: T) => void) => {
      if (left < 0) throw new Error('it went on after a failure')
      await onStep()
      const works = left-- > 0
      records.slice(0, works ? undefined : Math.floor(records.length * arrives)).forEach(to)
      if (!works) throw new PostriderError('kafka_unavailable', 'the broker is gone')
    }
    return {
      settings: { state: settings, catchUp: async () => {} },
      actor: () => 'ci',
      erasures: {
        write: (erasures) =>
          step(erasures, (erasure) =>
            this.erasures.push({ erasure, appendedAt: startedAt + this.erasures.length }),
          ),
        read: () => inOrder([...this.erasures]),
      },
      openCalls: () => {
        let waiting: AnalyticsCall[] = []
        const send = async () => {
          const batch = waiting
          waiting = []
          if (batch.length > 0) await step(batch, (call) => this.calls.push(call))
        }
        return {
          async write(call) {
            waiting.push(call)
            if (waiting.length === 2) await send()
          },
          flush: send,
          close: async () => {},
        }
      },
      events: () => inOrder([]),
      newRequestId: (at) => requestIdOf(at, String(this.requests++)),
      now: () => startedAt,
    }
  }
}

const pairOf = ({ sourceId, userId }: { sourceId: string; userId: string | null }) => `${sourceId}/${userId}`

/** Every delete call that the erasures owe is there, under one messageId, and no other. */
function assertAllTold({ erasures, calls }: Topics): void {
  const owed = new Set(
    erasures
      .filter(({ erasure }) => erasure.destinationIds.length > 0)
      .map(({ erasure }) => `${erasure.requestId} ${pairOf(erasure)}`),
  )
  const ids = new Map<string, Set<string>>()
  for (const call of calls) {
    const [, request] = /^delete-([0-9a-z]{9}-\d+)-/.exec(call.messageId)!
    const owes = `${request} ${pairOf(call)}`
    ids.set(owes, (ids.get(owes) ?? new Set()).add(call.messageId))
  }
  assert.deepEqual([...ids.keys()].sort(), [...owed].sort())
  for (const each of ids.values()) assert.equal(each.size, 1)
  assert.equal(new Set([...ids.values()].map(([id]) => id)).size, owed.size)
}

const cut = fc.record({ steps: fc.nat({ max: 6 }), arrives: fc.constantFrom(0, 0.5, 1) })

test('property: wherever it is interrupted and resumed, each required delete call is written, under one messageId', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', 'c') }), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.option(fc.constantFrom(['shop'], ['quiet'], ['blog', 'quiet']), { nil: null }),
      cut,
      fc.array(cut, { maxLength: 3 }),
      fc.option(fc.nat({ max: 6 }), { nil: null }),
      async (userIds, sourceIds, { steps, arrives }, resumes, meanwhileAt) => {
        const topics = new Topics()
        let step = 0
        // Another process that resumes it while it is being written.
        const meanwhile = async () => {
          if (step++ === meanwhileAt) await resumeDeletions(topics.ports(), null)
        }
        const requested = await requestDeletion(topics.ports(steps, arrives, meanwhile), {
          userIds,
          sourceIds,
        }).catch((error: unknown) => error)
        for (const each of resumes)
          await resumeDeletions(topics.ports(each.steps, each.arrives), null).catch((error: unknown) =>
            assert.match(
              (error as Error).message,
              /`postrider deletions resume` goes on where this stopped$/,
            ),
          )
        const summaries = await listDeletions(topics.ports())
        if (requested instanceof Error) {
          const [first] = summaries
          const advice =
            first === undefined || first.state === 'cut_off'
              ? /may have erased some of its users only: give all of them again$/
              : /^the broker is gone; (`postrider deletions resume \S+` goes on|deletion \S+ may have erased)/
          assert.match(requested.message, advice)
        } else {
          assert.deepEqual(
            summaries.map(({ state }) => state),
            ['finished'],
          )
          assertAllTold(topics)
        }
        await resumeDeletions(topics.ports(), null)
        assertAllTold(topics)
        assert.deepEqual(await resumeDeletions(topics.ports(), null), [])
      },
    ),
    { numRuns: 300 },
  )
})

test('resuming a request during its erasures does not drop users that are still to be erased', async () => {
  const topics = new Topics()
  const userIds = Array.from({ length: 2_000 }, (_, n) => `u-${n}`)
  let step = 0
  const resumed: object[] = []
  // 6,000 erasures are two writes: another process resumes between them, and then the request ends before its calls.
  const between = async () => {
    if (step++ === 1) resumed.push(...(await resumeDeletions(topics.ports(), null)))
  }
  await assert.rejects(
    requestDeletion(topics.ports(2, 0, between), { userIds }),
    /`postrider deletions resume /,
  )
  const [listed] = await listDeletions(topics.ports())
  const { requestId, state } = listed!
  assert.deepEqual(resumed, [{ requestId, deleteCalls: 3_333, missing: 1_000 }])
  assert.equal(state, 'interrupted')
  await resumeDeletions(topics.ports(), requestId)
  assertAllTold(topics)
})

test('no delete call is written before every user is erased', async () => {
  const topics = new Topics()
  const ports = topics.ports()
  const erasedAtCall: number[] = []
  const { openCalls } = ports
  ports.openCalls = () => {
    const calls = openCalls()
    return {
      ...calls,
      write(call) {
        erasedAtCall.push(topics.erasures.length)
        return calls.write(call)
      },
    }
  }
  const userIds = Array.from({ length: maxUsersOfRequest }, (_, n) => `u-${n}`)
  const phases: string[] = []
  const report = await requestDeletion(
    ports,
    { userIds },
    { onProgress: (phase, done, total) => phases.push(`${phase} ${done}/${total}`) },
  )
  assert.deepEqual([report.users, report.deleteCalls], [5_000, 10_000])
  assert.deepEqual(report.sources, [
    { sourceId: 'shop', notified: true },
    { sourceId: 'quiet', notified: false },
    { sourceId: 'blog', notified: true },
  ])
  assert.deepEqual([...new Set(erasedAtCall)], [15_000])
  assert.deepEqual(phases.slice(0, 3), ['erasing 0/15000', 'erasing 5000/15000', 'erasing 10000/15000'])
  assert.equal(phases.at(-1), 'notifying 10000/10000')
  assertAllTold(topics)
})

test('a stop takes effect before the start and between delete calls, but not in the middle of the erasures', async () => {
  const topics = new Topics()
  const aborted = AbortSignal.abort()
  await assert.rejects(
    requestDeletion(topics.ports(), { userIds: ['ada'] }, { signal: aborted }),
    /the deletion was stopped before it began; nothing was changed/,
  )
  assert.deepEqual(topics.erasures, [])
  const stop = new AbortController()
  const stopped = requestDeletion(
    topics.ports(),
    { userIds: ['ada'] },
    { signal: stop.signal, onProgress: () => stop.abort() },
  )
  await assert.rejects(stopped, /was stopped before its end: `postrider deletions resume \S+` goes on/)
  assert.deepEqual(
    (await listDeletions(topics.ports())).map(({ state, users }) => [state, users]),
    [['interrupted', 1]],
  )
})

test('a request is found whatever the clock of its creator said', async () => {
  const topics = new Topics()
  const ports = topics.ports()
  ports.now = () => startedAt + 3_600_000
  const asked: (number | undefined)[] = []
  const { read } = ports.erasures
  ports.erasures.read = async function* (options) {
    asked.push(options.since)
    for await (const stored of read(options)) if (stored.appendedAt >= (options.since ?? 0)) yield stored
  }
  const { requestId } = await requestDeletion(ports, { userIds: ['ada'] })
  assert.equal((await showDeletion(ports, requestId)).state, 'finished')
  assert.deepEqual(asked, [startedAt + 3_000_000, undefined])
  await assert.rejects(showDeletion(ports, 'nope'), { code: 'not_found' })
})

test('a refusal names every fault and writes nothing', async () => {
  const topics = new Topics()
  const refused = (userIds: string[], sourceIds?: string[]) =>
    requestDeletion(topics.ports(), { userIds, sourceIds }).catch((error: unknown) => error)
  const fault = (field: string, message: string, code = 'usage') => ({ code, field, message })
  const wrong = ['ok', '', 'x'.repeat(1_025), 'a\u0000b', 'ok', ' pad', '\ud800']
  assert.deepEqual(((await refused(wrong)) as { faults: object[] }).faults, [
    fault('userIds.1', 'userIds.1 is empty'),
    fault('userIds.2', 'userIds.2 holds an id of more than 1024 bytes'),
    fault('userIds.3', 'userIds.3 is not text: it holds control characters'),
    fault('userIds.4', 'userIds.4 names the user of userIds.0 again'),
    fault('userIds.5', 'userIds.5 begins or ends with white space'),
    fault('userIds.6', 'userIds.6 is not text: it holds control characters'),
  ])
  assert.match(((await refused([])) as Error).message, /^no user is named; nothing was changed$/)
  const many = Array.from({ length: 5_001 }, (_, n) => String(n))
  assert.match(
    ((await refused(many)) as Error).message,
    /^more than 5000 users are named.*split the list; nothing/,
  )
  const unknown = (await refused(['ada'], ['shop', 'nope', 'nor'])) as PostriderError & { faults: object[] }
  assert.deepEqual(unknown.faults, [
    fault('sourceIds', 'source "nope" does not exist', 'not_found'),
    fault('sourceIds', 'source "nor" does not exist', 'not_found'),
  ])
  assert.equal(unknown.code, 'not_found')
  assert.match(((await refused(['ada'], [])) as Error).message, /^sourceIds is empty/)
  assert.deepEqual([topics.erasures, topics.calls], [[], []])
})
