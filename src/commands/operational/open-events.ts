import { EventsReader } from '../../adapters/kafka/live/events-reader.ts'
import { openEventsLease, readCheckpoint, type EventsGroup } from '../../adapters/kafka/live/events-lease.ts'
import type { Deletions } from '../../operators/deletions/deletions.ts'
import {
  defaultOperationalTimes,
  emitOperationalEvents,
  type OperationalTimes,
} from '../../console/operational/emit-events.ts'
import type { OperationalPorts } from '../../console/operational/ports.ts'
import { PostriderError } from '../../errors.ts'
import type { Context } from '../context.ts'
import { sendCalls } from './send-event.ts'

/** A console that was killed holds the lease for so long, in ms. */
const leaseMs = 10_000

export interface OpenEventsOptions extends Context {
  deletions: Pick<Deletions, 'show'>
  times?: Partial<OperationalTimes> | undefined
}

/** Sends operational events until the signal aborts, while this console is the one to do so. Never rejects. */
export async function runOperationalEvents(options: OpenEventsOptions, signal: AbortSignal): Promise<void> {
  const { config, kafka, log, topics, codecs, deletions, times } = options
  const group: EventsGroup = {
    kafka,
    groupId: `${config.groupId}.events`,
    topics: [topics.deliveries, topics.deadLetters, topics.settings],
    sessionTimeoutMs: leaseMs,
    log,
  }
  const ports: OperationalPorts = {
    acquire: () => openEventsLease(group, signal),
    checkpoint: () => readCheckpoint(group),
    read: (from, fold, flow) => EventsReader.open({ kafka, log, topics, codecs }, from, fold, flow),
    send: (calls) => sendCalls(options, calls),
    async finishedDeletion(requestId) {
      try {
        const { users, sources, state, progress } = await deletions.show(requestId, signal)
        const isSettled = progress.every(({ waiting }) => waiting === 0)
        if (state === 'cut_off' || state === 'interrupted' || !isSettled) return null
        const sum = (pick: (each: (typeof progress)[number]) => number) =>
          progress.reduce((total, each) => total + pick(each), 0)
        const counts = {
          delivered: sum(({ delivered }) => delivered),
          failed: sum(({ failed }) => failed),
          skipped: sum(({ skipped }) => skipped),
        }
        return { users, sources, ...counts }
      } catch (error) {
        if (error instanceof PostriderError && error.code === 'not_found') return null
        throw error
      }
    },
    now: Date.now,
  }
  await emitOperationalEvents({
    ports,
    times: { ...defaultOperationalTimes, ...times },
    consoleUrl: config.consoleUrl,
    log,
    signal,
  })
}
