import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { ReportWriter } from '../adapters/kafka/write/report-writer.ts'
import type { CollectedCounts } from '../core/ledger/tally.ts'
import { deliveryEvent, type DeliveryEvent } from '../core/ledger/delivery-event.ts'
import {
  namedEndpoints,
  type Heartbeat,
  type HeartbeatEndpoint,
  type HeartbeatPartition,
  type ProcessIdentity,
} from '../core/ledger/heartbeat.ts'
import { messageOf } from '../errors.ts'
import { retryForever } from '../retry-forever.ts'
import type { Part } from '../supervisor.ts'
import { version } from '../version.ts'
import type { Context } from './context.ts'

/** What a process reports about one of its parts. */
export interface PartReport {
  role: string
  /** Of a collector: what came in since the last time it was asked, by source. */
  takeCollected?(): Map<string, CollectedCounts>
  requestsInFlight?(): number
  /** Of a forwarder. */
  partitions?(): Iterable<HeartbeatPartition>
  endpoints?(): Iterable<HeartbeatEndpoint>
  /** By which version of the settings it works; 0 while it does not. */
  settingsVersion?(): number
}

/** Where reports are written: the ledger. */
export interface ReportSink {
  ready(): Promise<void>
  /** Resolves once they are there. Tries for ever, or until a deadline by `performance.now()`. */
  write(key: string, events: readonly DeliveryEvent[], deadline?: number): Promise<void>
  close(): void
}

export interface ProcessReportsOptions {
  sink: ReportSink
  log: { debug(message: string): void; warn(message: string): void }
  identity: Omit<ProcessIdentity, 'roles'>
  parts: readonly PartReport[]
  /** 10 s unless given. */
  intervalMs?: number
}

const defaultIntervalMs = 10_000
/** How long a stop waits for the last reports, in ms. */
const lastReportsMs = 2_000

/**
 * Writes a process's heartbeats to the ledger, and its collector's summaries. One write is in flight at a time: while
 * Kafka is away, what comes in makes one longer summary, and no heartbeat is made. Nothing waits for it but a stop.
 */
export class ProcessReports implements Part {
  readonly name = 'reports'
  readonly #options: ProcessReportsOptions
  readonly #intervalMs: number
  #summedUntil = Date.now()
  #summaries = 0
  #heartbeats = 0
  #writing: Promise<void> | null = null

  constructor(options: ProcessReportsOptions) {
    this.#options = options
    this.#intervalMs = options.intervalMs ?? defaultIntervalMs
  }

  /** To be started before the parts that it reports on, and stopped after them. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { sink, log } = this.#options
    const onError = (error: unknown) =>
      log.debug(`heartbeats and summaries cannot be written yet: ${messageOf(error)}`)
    try {
      const isReady = await retryForever(() => sink.ready().then(() => true), { signal, onError })
      while (!signal.aborted) {
        this.#writing ??= this.#write(false).finally(() => (this.#writing = null))
        await passed(this.#intervalMs, signal)
      }
      if (isReady) await this.#writeLast()
    } finally {
      sink.close()
    }
  }

  async #writeLast(): Promise<void> {
    const deadline = performance.now() + lastReportsMs
    if (this.#writing !== null) await passed(lastReportsMs, endOf(this.#writing))
    if (this.#writing === null) await this.#write(true, deadline)
    else this.#options.log.warn('the last heartbeat and summaries are not written: Kafka does not answer')
  }

  async #write(isLast: boolean, deadline?: number): Promise<void> {
    const { sink, log, identity } = this.#options
    try {
      const events = [...this.#summariesNow(), this.#heartbeatNow(isLast)]
      await sink.write(identity.instance, events, deadline)
    } catch (error) {
      log.warn(`a heartbeat, and the summaries with it, may be lost: ${messageOf(error)}`)
    }
  }

  *#summariesNow(): Iterable<DeliveryEvent> {
    const { identity, parts } = this.#options
    const { instance } = identity
    const [from, to] = [this.#summedUntil, Date.now()]
    this.#summedUntil = to
    for (const part of parts) {
      for (const [sourceId, counts] of part.takeCollected?.() ?? []) {
        const collected = { instance, sequence: ++this.#summaries, from, to, ...counts }
        yield deliveryEvent('collected', to, { sourceId, collected })
      }
    }
  }

  #heartbeatNow(isLast: boolean): DeliveryEvent {
    const { identity, parts } = this.#options
    const requests = parts.flatMap((part) => part.requestsInFlight?.() ?? [])
    const versions = parts.flatMap((part) => part.settingsVersion?.() ?? [])
    const heartbeat: Heartbeat = {
      ...identity,
      roles: parts.map(({ role }) => role),
      sequence: ++this.#heartbeats,
      isLast,
      intervalMs: this.#intervalMs,
      requestsInFlight: requests[0] ?? null,
      partitions: parts.flatMap((part) => [...(part.partitions?.() ?? [])]),
      settingsVersion: versions.length === 0 ? 0 : Math.min(...versions),
      ...namedEndpoints(parts.flatMap((part) => [...(part.endpoints?.() ?? [])])),
    }
    return deliveryEvent('heartbeat', Date.now(), { heartbeat })
  }
}

/** Resolves after that many ms, or when the signal aborts. */
function passed(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}

/** Aborts when the work has ended. */
function endOf(work: Promise<void>): AbortSignal {
  const ended = new AbortController()
  void work.then(() => ended.abort())
  return ended.signal
}

/**
 * Heartbeats of this process and summaries of its collector, as a part that stands before the parts it reports on.
 * @param intervalMs 10 s unless given
 */
export function openReports(context: Context, parts: readonly PartReport[], intervalMs?: number): Part {
  const { kafka, log, topics, codecs } = context
  return new ProcessReports({
    sink: new ReportWriter({ kafka, topic: topics.deliveries, codec: codecs.deliveries, log }),
    log,
    identity: {
      instance: randomBytes(9).toString('base64url'),
      version,
      host: hostname(),
      pid: process.pid,
      startedAt: Math.round(Date.now() - process.uptime() * 1_000),
    },
    parts,
    ...(intervalMs !== undefined && { intervalMs }),
  })
}
