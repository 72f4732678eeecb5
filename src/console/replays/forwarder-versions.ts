import type { Heartbeat } from '../../core/ledger/heartbeat.ts'

/** A process is taken for gone when this many of its heartbeats are missing. */
const missedIntervals = 3

/** By their heartbeats, which settings the forwarders know: what one held under earlier ones is in the ledger by then. */
export class ForwarderVersions {
  readonly #forwarders = new Map<string, { at: number; intervalMs: number; version: number }>()

  /** @param at when the broker appended it, epoch ms */
  add(heartbeat: Heartbeat, at: number): void {
    const { instance, roles, isLast, intervalMs } = heartbeat
    if (!roles.includes('forwarder')) return
    if (isLast) {
      this.#forwarders.delete(instance)
      return
    }
    this.#forwarders.set(instance, { at, intervalMs, version: heartbeat.settingsVersion })
  }

  /** Whether each forwarder that is there works by these settings or later ones. */
  allKnow(version: number, now: number): boolean {
    return [...this.#forwarders.values()].every(
      ({ at, intervalMs, version: known }) => known >= version || at + missedIntervals * intervalMs < now,
    )
  }
}
