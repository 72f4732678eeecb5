import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../src/errors.ts'
import { longOutage, restartOne } from './kinds/broker-faults.ts'
import type { FaultContext, Lock } from './kinds/fault.ts'
import { faults } from './kinds/faults.ts'
import type { FaultKind } from './kinds/fault-kinds.ts'
import type { Options } from './options.ts'
import type { Random } from './random.ts'

/** A fault as it was. Times are epoch ms. */
export interface Injected {
  kind: FaultKind
  detail: string
  /** What it does or waits for, while it goes on. */
  step: string
  from: number
  /** When all worked again; Infinity while it does not. */
  to: number
}

/** Which faults come when: all chosen by the run's seed. */
export class Schedule {
  readonly injected: Injected[] = []
  readonly notInjected: { kind: FaultKind; reason: string }[] = []
  readonly #options: Options
  readonly #random: Random
  readonly #tell: (text: string) => void
  readonly #held = new Map<Lock, Promise<void>>()
  #infrastructureOkSince = performance.now()
  #infrastructureBroken = false

  constructor(options: Options, random: Random, tell: (text: string) => void) {
    this.#options = options
    this.#random = random
    this.#tell = tell
  }

  infrastructureFailed(sinceMs: number): boolean {
    return this.#infrastructureBroken || this.#infrastructureOkSince > sinceMs
  }

  /** Until the time is over, or each kind has come; resolves once the last fault is over. */
  async run(context: FaultContext, isOver: () => boolean): Promise<void> {
    const { once, kinds, longOutageMs } = this.#options
    let deck: FaultKind[] = []
    let longOutageDue = longOutageMs > 0
    for (let begun = 0; !isOver() && !(once && begun >= kinds.length); begun++) {
      if (deck.length === 0) deck = this.#random.shuffled(kinds)
      const kind = deck.pop()!
      await this.#held.get(faults[kind].lock)
      const running = this.#inject(kind, context, faults[kind].inject, faults[kind].lock)
      // A third of them meet the next one.
      if (!this.#random.chance(0.35)) await running
      if (longOutageDue && begun >= kinds.length) {
        longOutageDue = false
        await Promise.all(this.#held.values())
        await this.#inject(
          'broker-restarted',
          context,
          (given) => longOutage(given, longOutageMs),
          'infrastructure',
        )
      }
      await delay(this.#random.between(1_000, once ? 2_000 : 6_000))
    }
    await Promise.all(this.#held.values())
  }

  /** Every 12 s or so some broker is stopped, and started again a few seconds later. */
  async roll(context: FaultContext, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const began = performance.now()
      await this.#inject('broker-restarted', context, restartOne, 'infrastructure')
      await delay(Math.max(1_000, this.#random.between(10_000, 14_000) - (performance.now() - began)))
    }
  }

  /** One more broker that is stopped and started again, while something else is done. */
  async during<T>(context: FaultContext, work: () => Promise<T>): Promise<T> {
    const [result] = await Promise.all([
      work(),
      this.#inject('broker-restarted', context, restartOne, 'infrastructure'),
    ])
    return result
  }

  #inject(
    kind: FaultKind,
    context: FaultContext,
    inject: (context: FaultContext) => Promise<string | { notInjected: string }>,
    lock: Lock,
  ): Promise<void> {
    const running = (async () => {
      const entry: Injected = { kind, detail: '', step: 'began', from: Date.now(), to: Infinity }
      this.injected.push(entry)
      const isInfrastructure = lock === 'infrastructure'
      if (isInfrastructure) this.#infrastructureBroken = true
      try {
        const result = await inject({
          ...context,
          random: this.#random.fork(),
          step: (text) => void (entry.step = text),
        })
        if (typeof result === 'string') entry.detail = result
        else this.#drop(entry, result.notInjected)
      } catch (error) {
        this.#drop(entry, messageOf(error))
        context.finding(`the fault ${kind} broke off: ${messageOf(error)}`)
      } finally {
        entry.to = Date.now()
        if (isInfrastructure) {
          this.#infrastructureBroken = false
          this.#infrastructureOkSince = performance.now()
        }
      }
      if (entry.detail) this.#tell(`${kind}: ${entry.detail}`)
    })()
    this.#held.set(lock, running)
    return running
  }

  #drop(entry: Injected, reason: string): void {
    this.injected.splice(this.injected.indexOf(entry), 1)
    this.notInjected.push({ kind: entry.kind, reason })
    this.#tell(`NOT INJECTED ${entry.kind}: ${reason}`)
  }
}
