import { changeBy, endpointsMadeBy, type SingleEvent } from '../settings/events.ts'
import type { SettingsAggregate, Source } from '../settings/settings.ts'

/** Settings that are changed step by step, to decide each step on what those before it lead to. */
export class SettingsDraft {
  readonly #maps
  readonly state: SettingsAggregate

  /** Copies once, however many steps follow. */
  constructor(from: SettingsAggregate) {
    this.#maps = {
      sources: new Map<string, unknown>(from.sources),
      destinations: new Map<string, unknown>(from.destinations),
      computations: new Map<string, unknown>(from.computations),
      tokens: new Map<string, unknown>(from.tokens),
      replays: new Map<string, unknown>(from.replays),
      endpointsMade: new Map(from.endpointsMade),
    }
    this.state = { version: from.version, ...this.#maps } as SettingsAggregate
  }

  add(event: SingleEvent): void {
    const { of, value } = changeBy(this.state, event)
    this.#maps[of].set(value.id, value)
    if (of === 'destinations') this.#maps.endpointsMade.set(value.id, endpointsMadeBy(value, this.state))
  }

  /** Stands in for a source that was refused, so that what refers to it is not refused for that as well. */
  addPlaceholder(source: Source): void {
    if (!this.state.sources.has(source.id)) this.#maps.sources.set(source.id, source)
  }
}
