// Settings and counts of many destinations, all in trouble, for operations to work with, without Kafka.
import pino from 'pino'
import { openConsoleServer } from '../../src/console/server.ts'
import { maxUrlLength } from '../../src/core/delivery/endpoint-url.ts'
import { maxUrls } from '../../src/core/settings/destination-rules.ts'
import { spanMs, type RollupSpan } from '../../src/core/statistics/rollup.ts'
import type { Destination } from '../../src/core/settings/settings.ts'
import type { Infrastructure } from '../../src/operators/infrastructure/infrastructure.ts'
import { operations } from '../../src/operators/operations.ts'
import type { ConsoleServices } from '../../src/operators/services.ts'
import type {
  ListedAttempt,
  OpenDeadLetters,
  RollupPeriod,
  StatisticsStore,
} from '../../src/operators/statistics/series.ts'
import { adminToken } from './consoles.ts'
import { servicesOfTwo } from './services-of-two.ts'

/** Of destinations that are named so in the counts. */
interface ManyOptions {
  count: number
  /** Names, URLs and answers are as long as they can be, and every host is another one. */
  isLong?: boolean
  now?: number
}

/** Every seventh answers 503, every eleventh is paused, the others take what is sent to them. */
export function servicesOfMany({ count, isLong = false, now = Date.now() }: ManyOptions): ConsoleServices {
  const { services } = servicesOfTwo()
  const [like] = services.settings.state.destinations.values()
  const ids = Array.from({ length: count }, (_, index) => `many-${index}`)
  const isBad = (index: number) => isLong || index % 7 === 0
  const destinations = ids.map((id, index): [string, Destination] => {
    const base = `https://${isLong ? `host-${index}` : 'shared'}.example/${id}/`
    const urlsOf = () =>
      Array.from({ length: isLong ? maxUrls : 1 }, (_, number) => ({
        ...like!.urls[0]!,
        id: `u${number + 1}`,
        url: isLong ? base.padEnd(maxUrlLength, 'x') : base,
      }))
    const name = isLong ? `${id} `.padEnd(200, 'ü') : `Name of ${id}`
    const pause =
      !isBad(index) && index % 11 === 0 ? { id: 'pause', since: now - 600_000, until: null } : null
    // Made when somebody looks: 100,000 times five long ones are a gigabyte.
    const made = { ...like!, id, name, pause }
    return [id, Object.defineProperty(made, 'urls', { get: urlsOf, enumerable: true })]
  })
  const state = { ...services.settings.state, destinations: new Map(destinations) }
  const failed = { planned: 30, deadLettered: 20, retried: 10, deferred: 10, 'took/u1/3': 30 }
  const failures = Array.from({ length: isLong ? maxUrls : 1 }, (_, url) => [
    `end/u${url + 1}/status_5xx`,
    30,
  ])
  const bad = { ...failed, ...(Object.fromEntries(failures) as Record<string, number>) }
  const counts = new Map<string, Record<string, number>>(
    ids.map((id, index) => [
      id,
      isBad(index)
        ? bad
        : { planned: 30 + (index % 5), delivered: 30, 'end/u1/success': 30, [`took/u1/${index % 8}`]: 30 },
    ]),
  )
  const sources = new Map(
    ids.map((id) => [id, { 'accepted/track': 9, 'refused/track': 1, 'code/invalid': 1 }]),
  )
  const attempt: ListedAttempt = {
    ...{ at: now - 1_000, partition: 0, offset: 0, destinationId: '', urlId: 'u1', outcome: 'status_5xx' },
    ...{ status: 503, durationMs: 5, attempt: 1, messageId: 'm', deliveryId: 'm:d' },
    detail: 'status 503 '.padEnd(isLong ? 1_000 : 0, 'x'),
  }
  const deadLetters = (): OpenDeadLetters[] =>
    ids.flatMap((destinationId, index) =>
      isBad(index)
        ? { destinationId, reason: isLong ? `reason_${index}` : 'rejected', count: 20, lastAt: now - 1_000 }
        : [],
    )
  // All of it was counted a minute ago.
  const atIn = ({ span }: { span: RollupSpan }) => Math.floor((now - 60_000) / spanMs[span]) * spanMs[span]
  const isIn = (period: RollupPeriod) => atIn(period) >= period.from && atIn(period) < period.to
  const store: Partial<StatisticsStore> = {
    reach: () => ({ asOf: now - 500, since: now - 86_400_000 }),
    // As a store's, they are the caller's to add to.
    sums: (kind, period) =>
      isIn(period)
        ? new Map([...(kind === 'destination' ? counts : sources)].map(([id, each]) => [id, { ...each }]))
        : new Map(),
    series: ({ id }, period) => (isIn(period) ? [{ at: atIn(period), counts: { ...counts.get(id) } }] : []),
    totals: (_, { from }) => [{ at: from, counts: { planned: 30, delivered: 20, 'end/u1/success': 20 } }],
    attempts: () => ({ attempts: [attempt], next: null }),
    deadLetters: (where) => ('since' in where ? deadLetters() : []),
    processes: () => [
      {
        seenAt: now - 1_000,
        heartbeat: {
          ...{ instance: 'i', roles: ['forwarder', 'collector'], version: '1', host: 'host', pid: 1 },
          ...{ startedAt: now - 60_000, sequence: 5, isLast: false, intervalMs: 86_400_000 },
          ...{ requestsInFlight: 0, settingsVersion: 1, endpointsOmitted: count },
          partitions: [{ topic: 'calls', partition: 0, lag: 5, overdueMs: 0 }],
          endpoints: [],
        },
      },
    ],
  }
  const statistics = services
    .statistics()
    .then((others) => ({ ...(others as object), ...store }) as StatisticsStore)
  return {
    ...services,
    settings: { ...services.settings, state },
    statistics: () => statistics,
    heldKeptMs: async () => 86_400_000,
    mailer: null,
    mailsWaiting: () => null,
    audits: async () => ({ outcome: null, running: null, last: () => null }),
    infrastructure: { show: async () => infrastructure },
    now: () => now,
  } as unknown as ConsoleServices
}

const infrastructure: Infrastructure = {
  at: new Date(0).toISOString(),
  kafka: {
    ...{ problem: null, addresses: ['kafka:9092'], clusterId: 'c' },
    brokers: [1, 2, 3].map((id) => ({ id, host: `kafka-${id}`, port: 9_092, isController: id === 1 })),
  },
  registry: { problem: null, url: 'http://registry', subjects: [{ subject: 'calls', schemaId: 1 }] },
  topics: ['calls', 'retries', 'deliveries', 'settings'].map((name) => ({
    ...{ name, exists: true, partitions: 6, copies: 3, underReplicated: 0, withoutLeader: 0 },
    ...{ cleanupPolicy: 'delete', retentionMs: 86_400_000, maxMessageBytes: 1_048_576, problems: [] },
  })),
}

/** The real console over them. */
export const openConsoleOf = (services: ConsoleServices) =>
  openConsoleServer({
    ...{ port: 0, host: '127.0.0.1', token: adminToken, version: '1', operations },
    services: () => services,
    counts: { request: () => {} },
    log: pino({ level: 'error' }, { write: (line) => process.stderr.write(line) }),
  })
