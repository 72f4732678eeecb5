import type { Logger } from '../adapters/log.ts'
import type { PartReport } from './process-reports.ts'
import type { ReadinessCheck } from '../adapters/monitoring-server.ts'
import { restarting, type RestartCause } from '../restarts.ts'
import type { Part } from '../supervisor.ts'

/** A part from one start to its end, with everything that it holds open. `Ready` is what it gives once it takes work. */
export interface Life<Ready> {
  /** @param onReady called once it takes work */
  run(signal: AbortSignal, onReady: (ready: Ready) => void): Promise<void>
  /** Null when it takes work; otherwise why not. */
  problem(): string | null
  /** What its start waits for that waiting alone does not end; null where there is none. */
  heldUp?(): string | null
  /** What does not keep it from work. */
  warning?(): string | null
}

/**
 * The lives of a part, one after another: it restarts while Kafka or the registry is away and, a bounded number of times,
 * after a bug.
 */
export class PartLives<Ready> {
  readonly part: Part
  /** How often it was started again, by cause. */
  readonly restarts: Record<RestartCause, number> = { unavailable: 0, bug: 0 }
  #starting: Life<Ready> | null = null
  #current: { life: Life<Ready>; ready: Ready } | null = null

  constructor(name: string, log: Logger, assemble: () => Life<Ready> | Promise<Life<Ready>>) {
    const run = async (signal: AbortSignal) => {
      try {
        const life = (this.#starting = await assemble())
        if (!signal.aborted) await life.run(signal, (ready) => (this.#current = { life, ready }))
      } finally {
        this.#current = this.#starting = null
      }
    }
    this.part = restarting(
      name,
      () => ({ name, run }),
      log,
      undefined,
      (cause) => this.restarts[cause]++,
    )
  }

  /** Null while it takes no work. */
  get ready(): Ready | null {
    return this.#current?.ready ?? null
  }

  get checks(): ReadinessCheck[] {
    const problem = () =>
      this.#current ? this.#current.life.problem() : (this.#starting?.heldUp?.() ?? 'it is starting')
    return [{ name: this.part.name, problem, warning: () => this.#current?.life.warning?.() ?? null }]
  }
}

/** A part that is put together and does not run yet. */
export interface OpenPart<Counts> {
  part: Part
  counts: Counts
  checks: ReadinessCheck[]
  restarts: Readonly<Record<RestartCause, number>>
  /** What heartbeats say of it. */
  report: PartReport
}

export interface ListeningPart<Counts> extends OpenPart<Counts> {
  /** Resolves to the port once it listens, which it does from the start on: it answers 503 until it is ready. */
  listening: Promise<number>
}

export interface ListeningServer {
  port: number
  close(graceMs: number): Promise<void>
}

/**
 * A part that listens from its start to its end, whether or not `serving` takes work at the moment.
 * @param onListening called with the port
 */
export function listeningPart(
  serving: Part,
  listen: () => Promise<ListeningServer>,
  onListening: (port: number) => void,
): { part: Part; listening: Promise<number> } {
  const listening = Promise.withResolvers<number>()
  listening.promise.catch(() => {})
  const run = async (signal: AbortSignal) => {
    const server = await listen().catch((error: unknown) => {
      listening.reject(error)
      throw error
    })
    listening.resolve(server.port)
    onListening(server.port)
    await serveUntil(signal, server, serving)
  }
  return { part: { name: serving.name, run }, listening: listening.promise }
}

/** How long requests that are in flight may take to end, in ms. */
const graceMs = 10_000

/**
 * Runs what a server serves until the signal aborts: then no request comes in any more, and only when those in flight
 * have ended, what they wait for may end.
 */
async function serveUntil(signal: AbortSignal, server: ListeningServer, serving: Part): Promise<void> {
  const stopping = new AbortController()
  const stop = () => void server.close(graceMs).then(() => stopping.abort())
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await serving.run(stopping.signal)
  } finally {
    signal.removeEventListener('abort', stop)
    await server.close(graceMs)
  }
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Has it closed with the stack: what was opened last, first. */
export function closedWith<T extends { close(): unknown }>(open: AsyncDisposableStack, made: T): T {
  open.defer(async () => void (await made.close()))
  return made
}
