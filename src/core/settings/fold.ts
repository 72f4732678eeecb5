import { requestKeyOf } from './commands.ts'
import { forgottenAcknowledgements } from '../problems/acknowledgement.ts'
import { forgottenBy } from '../replay/replay-events.ts'
import { changeBy, endpointsMadeBy, partsOf, type SettingsChange, type SettingsEvent } from './events.ts'
import { initialSettings, type SettingsAggregate } from './settings.ts'

/** By what it is decided whether a record of the settings log counts. */
export interface SettingsEnvelope {
  /** Random, with a request's key behind it (commands.ts); a producer that appends twice appends the same id twice. */
  commandId: string
  /** The number of events that the writer saw accepted, in the whole log. */
  expectedVersion: number
  /** When it was written, in epoch milliseconds, by the writer's clock. */
  at: number
  /** Who wrote it: a token's name, `cli:<user>@<host>` and the like. Empty or absent where that is not known. */
  actor?: string | undefined
}

/** One record of the settings log, as its writer appended it. */
export interface SettingsRecord extends SettingsEnvelope {
  event: SettingsEvent
}

/**
 * `stale`: another event was accepted first. `repeated`: this command was seen before. `impossible`: it is about
 * something that does not exist. All of them are ignored.
 */
export type Verdict = 'accepted' | 'stale' | 'repeated' | 'impossible'

export interface AcceptedRequest {
  /** The digest of what was asked. */
  request: string
  event: SettingsEvent
  /** When the log took it, epoch ms. */
  appendedAt: number
}

/** For how long a request's key is remembered: as long as those of deletions are. */
export const requestsKeptMs = 40 * 24 * 3_600_000

type PartOfState = Exclude<keyof SettingsAggregate, 'version' | 'hidesBuiltIn'>

/** One thing that an accepted event changed. */
export interface TouchedSetting {
  of: SettingsChange['of']
  id: string
  /** Undefined: it was created. */
  before: SettingsChange['value'] | undefined
  after: SettingsChange['value']
}

/** An event that counted. */
export interface AcceptedRecord {
  record: SettingsRecord
  /** The log's version before it. */
  version: number
  /** When the log took it, epoch ms. */
  appendedAt: number
  /** In the order of their first change, each once. */
  touched: readonly TouchedSetting[]
}

/**
 * The settings log, folded record by record. The one rule by which every reader folds it: an event counts only if its
 * expected version is the log's version at that point and its command was not there before. So all readers see one
 * state, whatever was appended at the same time or twice.
 *
 * Folding changes private maps and costs the same for each record, however many there were. What others see is a
 * copy, made when it is asked for.
 */
export class SettingsFold {
  readonly #maps: { [P in PartOfState]: Map<string, unknown> } = {
    sources: new Map(),
    destinations: new Map(),
    computations: new Map(),
    tokens: new Map(),
    replays: new Map(),
    plans: new Map(),
    acknowledgements: new Map(),
    mailAlerts: new Map(),
    endpointsMade: new Map(),
  }
  readonly #onAccepted: ((accepted: AcceptedRecord) => void) | undefined
  #version = 0
  /** What was published last, and which parts of it have changed since. */
  #published: SettingsAggregate = initialSettings
  readonly #changed = new Set<PartOfState>()
  /**
   * Commands that were ignored although their version still lies ahead (a log that lost its end can hold such).
   * Only these need remembering: a repeat of any other is stale by its version, for versions only grow.
   */
  readonly #ignoredAhead = new Set<string>()
  /** Requests with a key that were accepted, the oldest first: a repeated one gets the same answer. */
  readonly #requests = new Map<string, AcceptedRequest>()

  /** @param onAccepted learns of each event that counts, in their order */
  constructor(onAccepted?: (accepted: AcceptedRecord) => void) {
    this.#onAccepted = onAccepted
  }

  get version(): number {
    return this.#version
  }

  /** The state now. It never changes again; the same object as long as nothing was accepted. */
  get state(): SettingsAggregate {
    if (this.#published.version === this.#version) return this.#published
    const copies: Record<string, unknown> = {}
    for (const part of this.#changed) copies[part] = new Map(this.#maps[part])
    this.#changed.clear()
    this.#published = { ...this.#published, ...copies, version: this.#version }
    return this.#published
  }

  /** A request that was accepted under this key within the last 40 days. `now` is in epoch ms. */
  request(key: string, now: number): AcceptedRequest | undefined {
    const found = this.#requests.get(key)
    return found && found.appendedAt > now - requestsKeptMs ? found : undefined
  }

  /** Whether a record would count, whatever it says; notes it where that decides about its repeats. */
  judge({ commandId, expectedVersion }: SettingsEnvelope): Exclude<Verdict, 'impossible'> {
    if (this.#ignoredAhead.has(commandId)) return 'repeated'
    if (expectedVersion > this.#version) this.#ignoredAhead.add(commandId)
    return expectedVersion === this.#version ? 'accepted' : 'stale'
  }

  /** `appendedAt`: when the log took the record, epoch ms. */
  take(record: SettingsRecord, appendedAt: number): Verdict {
    const verdict = this.judge(record)
    if (verdict !== 'accepted') return verdict
    const touched = this.#change(record.event)
    if (touched === null) return 'impossible'
    const version = this.#version++
    this.#remember(record, appendedAt)
    this.#onAccepted?.({ record, version, appendedAt, touched })
    return 'accepted'
  }

  /** Counts a record that is ignored. */
  pass(): void {
    this.#version++
  }

  /** Changes everything that the event says, or, with null, nothing. */
  #change(event: SettingsEvent): TouchedSetting[] | null {
    const maps = this.#maps as unknown as SettingsAggregate
    const touched = new Map<string, TouchedSetting>()
    const undo: (() => void)[] = []
    const set = (of: PartOfState, id: string, value: unknown): unknown => {
      const map = this.#maps[of]
      const before = map.get(id)
      undo.push(before === undefined ? () => map.delete(id) : () => map.set(id, before))
      map.set(id, value)
      this.#changed.add(of)
      return before
    }
    try {
      for (const part of partsOf(event)) {
        const { of, value } = changeBy(maps, part)
        const { id } = value
        const before = set(of, id, value) as TouchedSetting['before']
        const known = touched.get(`${of}/${id}`)
        if (known) known.after = value
        else touched.set(`${of}/${id}`, { of, id, before, after: value })
        if (of === 'destinations') set('endpointsMade', id, endpointsMadeBy(value, maps))
        if (of === 'replays')
          for (const ended of forgottenBy(value, maps.replays)) this.#maps.replays.delete(ended)
        if (of === 'acknowledgements')
          for (const old of forgottenAcknowledgements(maps.acknowledgements))
            this.#maps.acknowledgements.delete(old)
      }
    } catch {
      for (const revert of undo.reverse()) revert()
      return null
    }
    return [...touched.values()]
  }

  #remember({ commandId, event }: SettingsRecord, appendedAt: number): void {
    for (const [key, { appendedAt: at }] of this.#requests) {
      if (at > appendedAt - requestsKeptMs) break
      this.#requests.delete(key)
    }
    const keyed = requestKeyOf(commandId)
    if (!keyed) return
    // Behind all others: those are in the order of time.
    this.#requests.delete(keyed.key)
    this.#requests.set(keyed.key, { request: keyed.request, event, appendedAt })
  }
}
