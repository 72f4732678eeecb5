// Settings, calls, counts and so on of two who have nothing to do with each other, for operations to work with, without
// Kafka: the sources `shop` and `zeta`, the destinations `crm` and `zeta-crm`, of which each gets calls of both. Every
// name of the second has "zeta" in it, and every count is 7777.
import assert from 'node:assert/strict'
import { noTotals, type ReplayRange } from '../../src/core/replay/replay-job.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { decide } from '../../src/core/settings/decide.ts'
import { noRules } from '../../src/core/settings/deployment-rules.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { initialSettings, type Destination } from '../../src/core/settings/settings.ts'
import { PostriderError } from '../../src/errors.ts'
import type { ConsoleServices } from '../../src/operators/services.ts'
import { currentActor, SettingsRefused, type PerformOptions } from '../../src/operators/settings/writer.ts'
import { someCall } from './calls/calls.ts'

export const now = Date.UTC(2026, 0, 2, 12)
const many = 7_777

/** Of `shop` or of `zeta`, as sources, plans, events and users are named. */
const sourceIds = ['shop', 'zeta'] as const
/** Their destinations. Both get calls of both. */
const destinationIds = ['crm', 'zeta-crm'] as const

const destination = (id: string): SettingsCommand => ({
  type: 'create_destination',
  id,
  name: `Name of ${id}`,
  sourceIds: [...sourceIds],
  urls: [`https://${id}.example/hooks`],
  headers: [],
  sharedSecret: null,
  enabled: true,
})

const replay = (id: string, destinationId: string): SettingsCommand => ({
  type: 'start_replay',
  id,
  terms: {
    deadLetters: null,
    destinationId,
    only: ['failed'],
    since: now - 3_600_000,
    until: now,
    types: null,
    events: null,
    user: null,
    messageId: null,
    rate: null,
  },
  pauseId: null,
  keptSince: null,
  at: now,
})

const made: readonly SettingsCommand[] = [
  ...sourceIds.flatMap((id): SettingsCommand[] => [
    { type: 'create_plan', id: `${id}-plan`, name: `Plan of ${id}`, events: {}, unknownEvents: 'allow' },
    {
      type: 'create_source',
      id,
      name: `Name of ${id}`,
      writeKey: `key-of-${id}`,
      plan: `${id}-plan`,
      enabled: true,
    } as SettingsCommand,
    {
      type: 'create_computation',
      kind: 'audience',
      id: `${id}-audience`,
      name: `Audience of ${id}`,
      sourceId: id,
    },
    { type: 'create_computation', kind: 'trait', id: `${id}-trait`, name: `Trait of ${id}`, sourceId: id },
  ]),
  ...destinationIds.map(destination),
  replay('replay-crm', 'crm'),
  replay('replay-zeta', 'zeta-crm'),
]

const calls = sourceIds.map((sourceId, offset) => ({
  place: { topic: 'calls', partition: 0, offset },
  appendedAt: now - 60_000,
  writer: 'collector' as const,
  call: someCall({
    messageId: `m-${sourceId}`,
    sourceId,
    userId: `user-${sourceId}`,
    event: `Event of ${sourceId}`,
    properties: `{"of":"${sourceId}"}`,
  }),
}))

/** Of `zeta`'s calls at both destinations, and of `shop`'s. */
const deadLetters = destinationIds.flatMap((destinationId, index) =>
  sourceIds.map((sourceId, offset) => {
    const partition = index * 11
    const id = `d-${offset}:${destinationId}`
    const origin = { topic: 'calls', partition: 0, offset, timestamp: now }
    return {
      id: `${partition}-${offset}`,
      record: { partition, offset, key: null, value: null, headers: {}, timestamp: now },
      problem: null,
      failedAt: now - 1_000,
      owner: { sourceId, type: 'track', userIds: [], appendedAt: now },
      deadLetter: {
        reason: 'rejected',
        detail: 'status 400',
        failedAt: now - 1_000,
        origin,
        owner: 'member/1',
        from: null,
        delivery: {
          id,
          messageId: `m-${partition}`,
          sourceId,
          destinationId,
          userIds: [],
          type: 'track',
          body: Buffer.from('{}'),
          filled: null,
          endpointIds: ['u1'],
          attempts: 1,
          timesScheduled: 0,
          firstAttemptAt: now,
          firstScheduledAt: null,
          notBefore: null,
          outcomes: [],
          lastResponse: null,
          lastExchange: null,
          origin,
        },
        raw: null,
        rawKey: null,
        omittedBytes: null,
        omittedSha256: null,
      },
    }
  }),
)

export const isOthers = (id: string) =>
  id.includes('zeta') || id === '' || id === 'unknown' || id === 'postrider'
/** Of a source or destination; also of records for none, and of unknown write keys. */
const countsOf = (id: string) => {
  const count = isOthers(id) ? many : 3
  return { planned: count, accepted: count, delivered: count, 'code/message_too_large': count }
}
const subjects = {
  source: [...sourceIds, 'unknown', 'postrider'],
  destination: [...destinationIds, ''],
}
type Kind = keyof typeof subjects

const statistics = {
  reach: () => ({ asOf: now, since: now - 86_400_000 }),
  series: ({ id }: { id: string }) => [{ at: now - 60_000, counts: countsOf(id) }],
  sums: (kind: Kind) => new Map(subjects[kind].map((id) => [id, countsOf(id)])),
  totals: () => [{ at: now - 60_000, counts: countsOf('zeta') }],
  has: ({ kind, id }: { kind: Kind; id: string }) => subjects[kind].includes(id),
  attempts: ({ destinationId }: { destinationId: string | null }) => ({
    attempts: destinationIds
      .filter((id) => destinationId === null || id === destinationId)
      .map((id, offset) => ({
        ...{ at: now, partition: 0, offset, destinationId: id, urlId: 'u1', outcome: 'status_5xx' },
        ...{
          status: 503,
          durationMs: 5,
          attempt: 1,
          messageId: `m-of-${id}`,
          deliveryId: `m-of-${id}:${id}`,
        },
        detail: null,
      })),
    next: null,
  }),
  violations: (
    { sourceId, planId }: { sourceId: string | null; planId: string | null },
    limit: number,
    skip: number,
  ) =>
    sourceIds
      .filter((id) => (sourceId ?? id) === id && (planId ?? `${id}-plan`) === `${id}-plan`)
      .map((id) => ({
        ...{ sourceId: id, planId: `${id}-plan`, mode: 'report', count: 2, lastAt: now },
        ...{ event: `Event of ${id}`, path: `/${id}`, rule: 'type', messageIds: [`m-${id}`] },
      }))
      .slice(skip, skip + limit),
  deadLetters: () =>
    destinationIds.map((destinationId) => ({ destinationId, reason: 'rejected', count: 2, lastAt: now })),
  processes: () => [
    {
      seenAt: now - 1_000,
      heartbeat: {
        ...{ instance: 'i', roles: ['forwarder', 'collector'], version: '1', host: 'zeta-host', pid: many },
        ...{ startedAt: now - 60_000, sequence: 5, isLast: false, intervalMs: 10_000, requestsInFlight: 0 },
        partitions: [{ topic: 'calls', partition: 0, lag: many, overdueMs: many }],
        endpoints: destinationIds.map((destinationId) => ({
          ...{
            destinationId,
            urlId: 'u1',
            limit: 1,
            inFlight: isOthers(destinationId) ? many : 0,
            queued: 0,
          },
          ...{ breaker: 'open', pausedUntil: null, downSince: now - 5_000, lastSuccessAt: null },
          lastFailure: null,
        })),
        ...{ endpointsOmitted: many, settingsVersion: 1 },
      },
    },
  ],
  isDeadLetter: () => false,
  deadLettersSince: () => null,
  lastAudit: () => null,
  keepAudit: () => {},
}

const messages = {
  facts: async (messageIds: string[]) => messageIds.map(factsOf),
  callsOfUser: async (userId: string) => ({
    calls: calls.filter(({ call }) => call.userId === userId),
    ...{ indexedSince: null, next: null },
  }),
  settingsBetween: async () => [],
  erasures: async () => ({ covers: () => false }),
}

function factsOf(messageId: string) {
  const found = calls.filter(({ call }) => call.messageId === messageId)
  return {
    ...{ callsTopic: 'calls', indexedSince: null, calls: found, omitted: 0 },
    traces: found.flatMap(({ place, call: { sourceId } }) => [
      {
        ...{ kind: 'planned', place, of: place, at: now, owner: 'member/1', sourceId, receivedAt: now },
        plan: destinationIds.map((destinationId) => ({ destinationId, urlId: null, reason: null })),
      },
      ...destinationIds.map((destinationId) => ({
        ...{ kind: 'attempt', place, of: place, at: now, owner: 'member/1', destinationId, ofUrlId: null },
        ...{ urlId: 'u1', attempt: 1, outcome: 'status_4xx', status: 400, durationMs: 5 },
        detail: `by ${destinationId}`,
      })),
    ]),
    finish: () => ({
      finished: true,
      tally: {
        ...{ at: now, owner: 'member/1', records: 1, counts: [] },
        held: destinationIds.map((destinationId) => ({
          ...{ destinationId, pauseId: `pause-${destinationId}`, urlId: null },
        })),
      },
    }),
    ownerOf: async () => null,
    attemptsOf: async () =>
      destinationIds.map((destinationId) => ({
        ...{ destinationId, endpointId: 'u1', outcome: 'status_4xx', status: 400, durationMs: 5, at: now },
        ...{ detail: 'status 400', exchange: null },
        body: Buffer.from(`by ${destinationId}`),
      })),
  }
}

/** What was done to anything. */
export interface Deed {
  what: string
  to: string
  by: string | undefined
}

/** @param more commands behind those of the two */
export function servicesOfTwo(more: readonly SettingsCommand[] = []): {
  services: ConsoleServices
  deeds: Deed[]
} {
  let state = [...made, ...more].reduce((before, command) => {
    const decision = decide(command, before)
    assert.ok(decision.accepted, JSON.stringify([command, decision]))
    return evolve(before, decision.event!)
  }, initialSettings)
  const deeds: Deed[] = []
  const did = (what: string, to: string) => void deeds.push({ what, to, by: currentActor() })
  const status = (id: string) => ({
    ...{ job: state.replays.get(id)!, totals: noTotals(), toLook: 1, waitsFor: null },
    overlapping: ['replay-zeta', 'replay-crm'].filter((each) => each !== id),
  })
  const ofRange = ({ deadLetters: chosen, ...range }: ReplayRange) =>
    chosen === null ? (range as { destinationId: string }).destinationId : JSON.stringify(chosen)
  const settings = {
    get state() {
      return state
    },
    rules: noRules,
    authorAfter: () => null,
    catchUp: async () => {},
    async execute(command: SettingsCommand) {
      return (await this.perform(command)).state
    },
    async perform(command: SettingsCommand, { check }: PerformOptions = {}) {
      check?.(state)
      const decision = decide(command, state)
      if (!decision.accepted) throw new SettingsRefused(decision.faults)
      did(command.type, 'id' in command ? command.id : '')
      if (decision.event) state = evolve(state, decision.event)
      return { state, event: decision.event, repeated: false }
    },
  }
  const services = {
    settings,
    secrets: {},
    sendSample: async ({ id }: Destination) => did('sample', id) ?? [],
    newestCalls: async (isWanted: (call: object) => boolean) =>
      calls.map(({ call }) => call).filter(isWanted),
    deadLetters: {
      async *all() {
        yield* deadLetters
      },
      async byId(id: string) {
        const found = deadLetters.filter((each) => each.id === id || each.deadLetter.delivery.id === id)
        if (found.length === 0) throw new PostriderError('not_found', `the topic holds no dead letter ${id}`)
        return found
      },
      newest: async ({ pick }: { pick(stored: object): object | null }) => ({
        deadLetters: deadLetters.flatMap((each) => pick(each) ?? []),
        next: null,
      }),
    },
    computations: async () => ({ count: async () => 1 }),
    erasures: async () => ({ erasedAt: () => now, covers: () => false }),
    messages: async () => messages,
    catalogue: async () => ({
      eventsOf: async (id: string) => ({
        ...{ knownSince: now, omittedCalls: 0 },
        events: [
          { type: 'track', name: `Event of ${id}`, calls: 1, firstSeen: now, lastSeen: now, fields: 0 },
        ],
      }),
      wholeEventsOf: async (ids: string[]) => ({
        knownSince: now,
        events: ids.map((id) => ({
          ...{ type: 'track', name: `Event of ${id}` },
          event: { calls: 1, firstSeen: now, lastSeen: now, fields: new Map(), omittedFields: 0 },
        })),
      }),
    }),
    replays: {
      list: () => [...state.replays.values()],
      show: async (id: string) => status(id),
      turn: async (id: string, turn: string) => {
        did(turn, id)
        return status(id)
      },
      start: async (range: ReplayRange) => {
        did('replay', ofRange(range))
        return { status: status('replay-crm'), repeated: false }
      },
      dryRun: async (range: ReplayRange) => {
        did('dry run', ofRange(range))
        return { range, keptSince: null, totals: noTotals() }
      },
    },
    heldKeptMs: async () => null,
    statistics: async () => statistics,
    waiting: {
      counts: async () => new Map(destinationIds.map((id) => [id, isOthers(id) ? many : 1])),
      sure: () => null,
      list: async (id: string) => ({
        calls: [
          { messageId: `m-${id}`, type: 'track', receivedAt: now, tier: '10s', dueAt: now, attempts: 1 },
        ],
        isCut: false,
      }),
      held: async (id: string) => ({
        calls: [
          { messageId: `m-${id}`, type: 'track', receivedAt: now, tier: '10s', dueAt: now, attempts: 1 },
        ],
        isCut: false,
      }),
    },
    audits: async () => ({ outcome: { ok: false, at: now }, last: () => null }),
    deletions: { list: async () => [{ id: 'zeta-deletion', state: 'interrupted', requestedAt: now }] },
    callsTopic: 'calls',
    collectorUrl: null,
    liveTail: {
      async begin({ sourceId }: { sourceId: string }, sink: { write(line: object): void }) {
        for (const { call } of calls) if (call.sourceId === sourceId) sink.write({ kind: 'call', call })
        return { ended: Promise.resolve() }
      },
    },
    now: () => now,
  }
  return { services: services as unknown as ConsoleServices, deeds }
}
