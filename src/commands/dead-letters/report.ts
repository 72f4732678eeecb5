import type { ReplayReport, ReplayVerdict } from '../../console/dead-letters/replay.ts'
import { PostriderError } from '../../errors.ts'
import { print, printable, printJson, printTable } from '../output.ts'
import { ProgressBar } from '../progress-bar.ts'

interface Shown {
  dryRun: boolean
  json: boolean
}

/** Says what became of each dead letter, and how many there were. */
export class PrintedReport implements ReplayReport {
  readonly #shown: Shown
  readonly #bar = new ProgressBar()
  readonly #rows: string[][] = []
  readonly #counts = new Map<string, number>()
  /** Could not be replayed. */
  refused = 0
  #repeated = 0
  /** Null until it has begun. */
  #total: number | null = null
  #looked = 0

  constructor(shown: Shown) {
    this.#shown = shown
  }

  range(total: number): void {
    this.#total = total
    this.#showBar()
  }

  looked(): void {
    this.#looked++
    this.#showBar()
  }

  addRepeated(): void {
    this.#repeated++
  }

  add({ stored, to, why }: ReplayVerdict): void {
    const { dryRun, json } = this.#shown
    const deliveryId = stored.deadLetter?.delivery?.id ?? null
    if (to === null) this.refused++
    else this.#counts.set(to, (this.#counts.get(to) ?? 0) + 1)
    if (json) printJson({ id: stored.id, deliveryId, to, replayed: to !== null && !dryRun, why })
    else if (dryRun)
      this.#rows.push([stored.id, stored.deadLetter?.reason ?? '-', deliveryId ?? '-', to ?? `- (${why})`])
    else if (to === null) console.error(`${stored.id} cannot be replayed: ${printable(why ?? '')}`)
  }

  /** The end, whatever came of it. Says nothing of what never began. */
  print(stopped: boolean): void {
    this.#bar.stop()
    const { dryRun, json } = this.#shown
    const total = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    if (!json && this.#total !== null) {
      if (this.#rows.length > 0) printTable(['id', 'reason', 'delivery', 'goes to'], this.#rows)
      const by = [...this.#counts].map(([topic, count]) => `${count} to ${topic}`).join(', ')
      print(
        `${dryRun ? 'would replay' : 'replayed'} ${total}${by && ` (${by})`}` +
          `${this.refused > 0 ? `; ${this.refused} cannot be replayed` : ''}` +
          `${this.#repeated > 0 ? `; ${this.#repeated} more are earlier failures of the same deliveries` : ''}`,
      )
    }
    if (stopped)
      console.error('postrider: stopped before the end; the same command goes on, and repeats what was sent')
  }

  /** Where nothing else is printed meanwhile. */
  #showBar(): void {
    if (this.#shown.dryRun || this.#shown.json) return
    const format = 'replaying {bar} {value}/{total} looked at, {eta_formatted} left'
    this.#bar.show(format, this.#looked, this.#total ?? 0)
  }
}

/** Records a second, as `50` or `50/s`. Throws PostriderError 'usage'. */
export function readRate(text: string | undefined): number | null {
  if (text === undefined) return null
  const rate = Number(/^(\d{1,6}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text)?.[1] ?? 0)
  if (rate > 0) return rate
  throw new PostriderError(
    'usage',
    `--rate is ${JSON.stringify(text)}; it takes dead letters a second, such as 50 or 50/s`,
  )
}
