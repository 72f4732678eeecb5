// Operational events as tests see them: forwarders that write heartbeats often, and a receiver that subscribed.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { ReportWriter } from '../../../src/adapters/kafka/write/report-writer.ts'
import { ProcessReports, type PartReport } from '../../../src/cli/process-reports.ts'
import type { OperationalTimes } from '../../../src/operators/operational-events/events.ts'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import type { Deployment } from './deployment.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../receivers.ts'
import { silentLog } from '../silent-log.ts'
import { until } from '../until.ts'

/** In place of minutes: as short as leaves room for what a test does within one. */
export const fastTimes: Partial<OperationalTimes> = {
  windowMs: 1_500,
  endMs: 60_000,
  quietMs: 300,
  tickMs: 50,
  commitMs: 200,
  retryMs: 3_000,
}

/** Heartbeats of a forwarder's process, five a second, until it is stopped or the test ends. */
export function startHeartbeats(
  { kafka, topics, codecs, endFirst }: Deployment,
  instance: string,
  report: PartReport,
): () => Promise<void> {
  const reports = new ProcessReports({
    sink: new ReportWriter({ kafka, topic: topics.deliveries, codec: codecs.deliveries, log: silentLog }),
    log: silentLog,
    identity: { instance, version: 'test', host: 'test', pid: 1, startedAt: 1 },
    parts: [report],
    intervalMs: 200,
  })
  const stopping = new AbortController()
  const ended = reports.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await ended
  }
  endFirst(stop)
  return stop
}

export interface ReceivedEvent {
  name: string
  destination: string | null
  messageId: string
  properties: Record<string, unknown>
  request: ReceivedRequest
}

export interface Subscriber {
  receiver: Receiver
  /** By messageId, as receivers de-duplicate. */
  events(): ReceivedEvent[]
  /** Resolves to the Nth event of this name about this destination. */
  event(name: string, destination: string | null, number?: number): Promise<ReceivedEvent>
}

/** A destination of the built-in source, and the receiver behind it, which verifies signatures. */
export async function subscribe(
  t: TestContext,
  { settings, secrets }: Pick<Deployment, 'settings' | 'secrets'>,
  id = 'ops',
  sourceIds = ['postrider'],
): Promise<Subscriber> {
  const receiver = await startReceiver(t, { secret: 'op-secret' })
  await settings.execute({
    type: 'create_destination',
    id,
    name: id,
    sourceIds,
    urls: [receiver.url],
    headers: [],
    sharedSecret: newSecret('op-secret', secrets),
    enabled: true,
  })
  const events = () => {
    const found = new Map<string, ReceivedEvent>()
    for (const request of receiver.requests) {
      const { type, event, properties, messageId } = request.json() as {
        type: string
        event: string
        properties: Record<string, unknown>
        messageId: string
      }
      if (!messageId.startsWith('postrider-')) continue
      assert.equal(type, 'track')
      assert.equal(request.signature, 'valid')
      const destination = properties.destination as string | null
      if (!found.has(messageId))
        found.set(messageId, { name: event, destination, messageId, properties, request })
    }
    return [...found.values()]
  }
  return {
    receiver,
    events,
    async event(name, destination, number = 1) {
      const its = () => events().filter((each) => each.name === name && each.destination === destination)
      await until(() => its().length >= number, 30_000, `${name} of ${destination}, number ${number}`).catch(
        (error: unknown) => {
          const seen = events().map((each) => [each.name, each.destination, each.properties])
          throw new Error(JSON.stringify(seen), { cause: error })
        },
      )
      return its()[number - 1]!
    },
  }
}

/** Names of what came, in order, with the destination that each is about. */
export const namesOf = (subscriber: Subscriber): string[] =>
  subscriber.events().map(({ name, destination }) => `${name}: ${destination}`)
