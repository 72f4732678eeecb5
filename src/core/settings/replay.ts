import {
  SettingsFold,
  type AcceptedRecord,
  type SettingsEnvelope,
  type SettingsRecord,
  type Verdict,
} from './fold.ts'

/** What a record of the settings log is. Bytes that no Postrider ever wrote are none of these. */
export type SettingsEntry =
  | { kind: 'event'; record: SettingsRecord }
  /** An event that this version cannot read. A newer one may. */
  | { kind: 'unreadable'; envelope: SettingsEnvelope; reason: string }
  /** Passes over the record at that offset where it cannot be read. */
  | { kind: 'skip'; offset: number }

export interface PlacedEntry {
  offset: number
  /** When the broker appended it, epoch ms. */
  appendedAt: number
  entry: SettingsEntry
}

/** `skipped`: it counts and changes nothing. `noted`: a skip. */
export type EntryVerdict = Verdict | 'skipped' | 'noted'

export interface HeldAt {
  offset: number
  reason: string
}

/**
 * Folds the log's entries in their order. At an event that would count and cannot be read it holds: the state stays
 * as it was before it, and what lies behind waits, until a skip for that offset comes. Then the event counts as one that
 * changed nothing, so that versions are the same for readers that could read it. A skip of what can be read, or of what
 * comes later, does nothing.
 */
export class SettingsReplay {
  readonly #fold: SettingsFold
  readonly #waiting: PlacedEntry[] = []
  #held: HeldAt | null = null

  /** @param onAccepted as of SettingsFold */
  constructor(onAccepted?: (accepted: AcceptedRecord) => void) {
    this.#fold = new SettingsFold(onAccepted)
  }

  get fold(): SettingsFold {
    return this.#fold
  }

  /** Where it holds; null while everything was folded. */
  get held(): HeldAt | null {
    return this.#held
  }

  /** What was decided now: nothing while it holds, several when it goes on. */
  take(placed: PlacedEntry): { placed: PlacedEntry; verdict: EntryVerdict }[] {
    const decided: { placed: PlacedEntry; verdict: EntryVerdict }[] = []
    /** The next one last. */
    const todo = [placed]
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      const verdict = this.#held === null ? this.#decide(next) : null
      if (verdict !== null) decided.push({ placed: next, verdict })
      else if (next.entry.kind === 'skip' && next.entry.offset === this.#held?.offset) {
        const [skipped, ...behind] = this.#waiting.splice(0)
        this.#held = null
        this.#fold.pass()
        decided.push({ placed: skipped!, verdict: 'skipped' })
        todo.push(next)
        for (const each of behind.reverse()) todo.push(each)
      } else this.#waiting.push(next)
    }
    return decided
  }

  /** Null when it holds there. */
  #decide({ entry, appendedAt, offset }: PlacedEntry): EntryVerdict | null {
    switch (entry.kind) {
      case 'skip':
        return 'noted'
      case 'event':
        return this.#fold.take(entry.record, appendedAt)
      case 'unreadable': {
        // What does not count changes nothing, whatever it says.
        const verdict = this.#fold.judge(entry.envelope)
        if (verdict !== 'accepted') return verdict
        this.#held = { offset, reason: entry.reason }
        return null
      }
    }
  }
}
