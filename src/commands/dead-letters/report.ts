import type { ReplayCounts, ReplayReport, ReplayVerdict } from '../../console/dead-letters/replay.ts'
import { print, printable, printJson, printTable } from '../output.ts'
import { ProgressBar } from '../progress-bar.ts'
import { flagError } from '../flags.ts'

interface Shown {
  dryRun: boolean
  json: boolean
}

/** Says what became of each dead letter, and how many there were. */
export class PrintedReport implements ReplayReport {
  readonly #shown: Shown
  readonly #bar = new ProgressBar()
  readonly #rows: string[][] = []
  /** Null until it has begun. */
  #counts: ReplayCounts | null = null

  constructor(shown: Shown) {
    this.#shown = shown
  }

  get refused(): number {
    return this.#counts?.refused ?? 0
  }

  progress(counts: ReplayCounts): void {
    this.#counts = counts
    // Only where nothing else is printed meanwhile.
    if (this.#shown.dryRun || this.#shown.json) return
    const format = 'replaying {bar} {value}/{total} looked at, {eta_formatted} left'
    this.#bar.show(format, counts.looked, counts.total)
  }

  add({ stored, to, why }: ReplayVerdict): void {
    const { dryRun, json } = this.#shown
    const deliveryId = stored.deadLetter?.delivery?.id ?? null
    if (json) printJson({ id: stored.id, deliveryId, to, replayed: to !== null && !dryRun, why })
    else if (dryRun)
      this.#rows.push([stored.id, stored.deadLetter?.reason ?? '-', deliveryId ?? '-', to ?? `- (${why})`])
    else if (to === null) console.error(`${stored.id} cannot be replayed: ${printable(why ?? '')}`)
  }

  /** The end, whatever came of it. Says nothing of what never began. */
  print(stopped: boolean): void {
    this.#bar.stop()
    const { dryRun, json } = this.#shown
    if (!json && this.#counts !== null) {
      const { replayed, refused, repeated, topics } = this.#counts
      if (this.#rows.length > 0) printTable(['id', 'reason', 'delivery', 'goes to'], this.#rows)
      const by = Object.entries(topics).map(([topic, count]) => `${count} to ${topic}`)
      print(
        `${dryRun ? 'would replay' : 'replayed'} ${replayed}${by.length > 0 ? ` (${by.join(', ')})` : ''}` +
          `${refused > 0 ? `; ${refused} cannot be replayed` : ''}` +
          `${repeated > 0 ? `; ${repeated} more are earlier failures of the same deliveries` : ''}`,
      )
    }
    if (stopped)
      console.error('postrider: stopped before the end; the same command goes on, and repeats what was sent')
  }
}

/** Records a second, as `50` or `50/s`. Throws PostriderError 'usage'. */
export function readRate(text: string | undefined): number | null {
  if (text === undefined) return null
  const rate = Number(/^(\d{1,6}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text)?.[1] ?? 0)
  if (rate > 0) return rate
  throw flagError('--rate', text, 'dead letters a second, such as 50 or 50/s')
}
