import type { Findings } from '../evidence/findings.ts'
import type { Seat } from '../fleet.ts'

export interface UsageSample {
  /** Since the run began. */
  seconds: number
  rssMb: number
  files: number
}

const intervalMs = 10_000
/** Shorter runs say nothing: a process grows while it gets to know its work. */
const minSamples = 120
/** Room for what one moment has and another has not. */
const allowed = { rssShare: 1.25, rssMb: 60, files: 40 }

const inOrder = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0
/** Nine of ten are at most that: what it has while it works, and not while brokers are away. */
const most = (values: readonly number[]): number => inOrder(values, 0.9)
/** Nine of ten are at least that. */
const least = (values: readonly number[]): number => inOrder(values, 0.1)

/** Memory and open files of a process that lives through all faults. */
export class UsageWatch {
  readonly samples: UsageSample[] = []
  readonly #seat: Seat
  readonly #timer: NodeJS.Timeout
  readonly #began = performance.now()

  constructor(seat: Seat) {
    this.#seat = seat
    this.#timer = setInterval(() => void this.#sample(), intervalMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** The second fifth of the run against its last fifth, in the middle of each. */
  summary(): { before: UsageSample; after: UsageSample } | null {
    const { length } = this.samples
    if (length === 0) return null
    const middle = (from: number, to: number): UsageSample => {
      const part = this.samples.slice(Math.floor(length * from), Math.max(1, Math.floor(length * to)))
      return {
        seconds: part[part.length >> 1]?.seconds ?? 0,
        rssMb: Math.round(most(part.map(({ rssMb }) => rssMb))),
        files: most(part.map(({ files }) => files)),
      }
    }
    return { before: middle(0.2, 0.4), after: middle(0.8, 1) }
  }

  judge(findings: Findings): void {
    const summary = this.summary()
    if (!summary || this.samples.length < minSamples) return
    const { before, after } = summary
    if (after.rssMb > before.rssMb * allowed.rssShare + allowed.rssMb)
      findings.add('memory that grows', `${before.rssMb} MB, later ${after.rssMb} MB`)
    // Connections come and go with the load, by hundreds; what is never closed is open at each moment. While brokers are
    // away there are next to none, and the second fifth may lie in such minutes.
    const lastFifth = this.samples.slice(Math.floor(this.samples.length * 0.8))
    const fewestAfter = least(lastFifth.map(({ files }) => files))
    if (fewestAfter > before.files + allowed.files)
      findings.add('files that stay open', `${before.files}, later never less than ${fewestAfter}`)
  }

  async #sample(): Promise<void> {
    const usage = await this.#seat.usage()
    if (usage) this.samples.push({ seconds: (performance.now() - this.#began) / 1_000, ...usage })
  }
}
