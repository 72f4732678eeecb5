import type { Destination, SettingsState } from '../settings/settings.ts'

/** Settings as far as they decide whether a destination gets a call. */
export type PlanningSettings = Pick<SettingsState, 'sources' | 'destinations'>

/** A time within which these did not change. */
export interface SettingsEpoch {
  /** When it began, by the broker's clock, epoch ms; -Infinity for the first one. */
  since: number
  settings: PlanningSettings
  /** The most deliveries that a call comes to for the destination. */
  deliveries: number
}

/** What of the log's history counts for one destination: neighbours that plan alike are one. */
export class SettingsEpochs {
  readonly #destinationId: string
  readonly #epochs: SettingsEpoch[] = []
  #last: string | null = null

  constructor(destinationId: string) {
    this.#destinationId = destinationId
  }

  /** The oldest first. Those that are added later only ever lengthen it. */
  get all(): readonly SettingsEpoch[] {
    return this.#epochs
  }

  /** In the order of time. @param since epoch ms */
  add(since: number, state: PlanningSettings): void {
    const destination = state.destinations.get(this.#destinationId)
    const spelled = JSON.stringify(whatCounts(destination, state))
    if (spelled === this.#last) return
    this.#last = spelled
    const destinations = new Map(destination && [[destination.id, destination]])
    const deliveries = destination?.options.deliverTo === 'every' ? destination.urls.length : 1
    this.#epochs.push({ since, settings: { sources: state.sources, destinations }, deliveries })
  }
}

function whatCounts(destination: Destination | undefined, { sources }: PlanningSettings): unknown {
  if (destination === undefined) return null
  const { enabled, sourceIds, options, urls } = destination
  return [
    enabled,
    options,
    urls.map(({ id }) => id),
    sourceIds.map((id) => [id, sources.get(id)?.enabled ?? null]),
  ]
}

/** Indexes of those that lie within two times, of which there is always one. */
export function epochsWithin(epochs: readonly SettingsEpoch[], from: number, to: number): number[] {
  const found: number[] = []
  for (let index = 0; index < epochs.length; index++) {
    const end = epochs[index + 1]?.since ?? Infinity
    if (epochs[index]!.since <= to && end > from) found.push(index)
  }
  return found
}
