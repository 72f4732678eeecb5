import { SingleBar } from 'cli-progress'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { SettingsLog } from '../../adapters/settings-log.ts'
import { planReplay } from '../../core/replay.ts'
import { topicNames } from '../../core/topics.ts'
import { PostriderError } from '../../errors.ts'
import type { Context } from '../context.ts'
import { print, printJson, printTable, printable } from '../output.ts'
import { passes } from './filter.ts'
import type { Filter } from './filter.ts'
import { ReplayLots } from './replay-lots.ts'
import type { Outgoing } from './replay-lots.ts'
import { allLetters, lettersById } from './stored-letter.ts'
import type { LetterSource, StoredLetter } from './stored-letter.ts'

export interface ReplayRequest {
  /** Empty: by filter. */
  ids: readonly string[]
  filter: Filter
  dryRun: boolean
  /** Records a second; null for as many as Kafka takes. */
  rate: number | null
  json: boolean
}

interface Verdict {
  stored: StoredLetter
  /** The topic that it goes to; null when it cannot be replayed. */
  to: string | null
  why: string | null
}

/**
 * Sends dead letters again (contracts.md). All ids are looked up before anything is sent. Resolves to whether
 * everything that was asked for was, or with a dry run would be, replayed.
 */
export async function replay(
  context: Context,
  codecs: Codecs,
  letters: LetterSource,
  request: ReplayRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const tier = context.config.retryTiers[0]!
  await codecs.retries(tier.name).ready()
  const progress = progressBar(request)
  const chosen =
    request.ids.length > 0
      ? await newestOfEach(letters, request.ids, signal)
      : allLetters(letters, {
          since: request.filter.since,
          signal,
          onRange: (total) => progress.setTotal(total),
        })
  if (Array.isArray(chosen)) progress.setTotal(chosen.length)
  const report = new Report(request)
  const plan = await planner(context, codecs, signal)
  const lots = new ReplayLots({
    kafka: context.kafka(),
    rate: request.rate,
    signal,
    taken: ({ stored, topic }) => report.add({ stored, to: topic, why: null }),
    tooLarge: ({ stored, topic }) =>
      report.add({ stored, to: null, why: `it is larger than ${topic} takes` }),
  })
  const seen = new Set<string>()
  try {
    if (!request.dryRun) await lots.connect()
    for await (const stored of chosen) {
      if (signal.aborted) break
      progress.advance()
      if (!passes(request.filter, stored)) continue
      const deliveryId = stored.letter?.delivery?.id
      // A delivery that was replayed and failed again has several; its newest attempt is not of interest here.
      if (deliveryId !== undefined && seen.has(deliveryId)) {
        report.repeated++
        continue
      }
      const planned = plan(stored)
      if ('why' in planned) {
        report.add({ stored, to: null, why: planned.why })
        continue
      }
      if (deliveryId !== undefined) seen.add(deliveryId)
      if (request.dryRun) report.add({ stored, to: planned.topic, why: null })
      else await lots.add(planned)
    }
    await lots.flush()
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.stop()
    await lots.close()
    report.print(signal.aborted)
  }
  return report.refused === 0 && !signal.aborted
}

/** By id: of a delivery that failed several times the newest. Throws `not_found` before anything is sent. */
async function newestOfEach(
  letters: LetterSource,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<StoredLetter[]> {
  const found: StoredLetter[] = []
  for (const id of new Set(ids)) found.push((await lettersById(letters, id, signal)).at(-1)!)
  return found
}

/** What one dead letter becomes, on the settings as they are now. */
async function planner(
  { config, kafka, log }: Context,
  codecs: Codecs,
  signal: AbortSignal,
): Promise<(stored: StoredLetter) => Outgoing | { why: string }> {
  const topics = topicNames(config.topicPrefix)
  const tier = config.retryTiers[0]!.name
  const settings = new SettingsLog({
    kafka: kafka(),
    topic: topics.settings,
    groupId: config.groupId,
    codec: codecs.settings,
    log,
  })
  try {
    await settings.start(signal)
  } finally {
    await settings.close()
  }
  const { destinations } = settings.state
  return (stored) => {
    const { letter, record, id, problem } = stored
    if (!letter) return { why: `it cannot be read: ${problem}` }
    const planned = planReplay(letter, {
      now: Date.now(),
      owner: `replay/${id}`,
      topics,
      destination: destinations.get(letter.delivery?.destinationId ?? '') ?? null,
    })
    if (planned.kind === 'refused') return { why: planned.why }
    if (planned.kind === 'raw')
      return {
        stored,
        topic: planned.topic,
        key: planned.key && Buffer.from(planned.key),
        value: Buffer.from(planned.value),
        headers: record.headers.traceparent ? { traceparent: record.headers.traceparent } : {},
      }
    return {
      stored,
      topic: topics.retry(tier),
      key: record.key,
      value: codecs.retries(tier).encode({ ...planned.record, key: record.key }),
      headers: record.headers,
    }
  }
}

/** Says what became of each dead letter, and how many there were. */
class Report {
  readonly #request: ReplayRequest
  readonly #rows: string[][] = []
  readonly #counts = new Map<string, number>()
  /** Could not be replayed. */
  refused = 0
  /** Further dead letters of a delivery that was already taken. */
  repeated = 0

  constructor(request: ReplayRequest) {
    this.#request = request
  }

  add({ stored, to, why }: Verdict): void {
    const { dryRun, json } = this.#request
    const deliveryId = stored.letter?.delivery?.id ?? null
    if (to === null) this.refused++
    else this.#counts.set(to, (this.#counts.get(to) ?? 0) + 1)
    if (json) printJson({ id: stored.id, deliveryId, to, replayed: to !== null && !dryRun, why })
    else if (dryRun)
      this.#rows.push([stored.id, stored.letter?.reason ?? '-', deliveryId ?? '-', to ?? `- (${why})`])
    else if (to === null) console.error(`${stored.id} cannot be replayed: ${printable(why ?? '')}`)
  }

  print(stopped: boolean): void {
    const { dryRun, json } = this.#request
    const total = [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
    if (!json) {
      if (this.#rows.length > 0) printTable(['id', 'reason', 'delivery', 'goes to'], this.#rows)
      const by = [...this.#counts].map(([topic, count]) => `${count} to ${topic}`).join(', ')
      print(
        `${dryRun ? 'would replay' : 'replayed'} ${total}${by && ` (${by})`}` +
          `${this.refused > 0 ? `; ${this.refused} cannot be replayed` : ''}` +
          `${this.repeated > 0 ? `; ${this.repeated} more are earlier failures of the same deliveries` : ''}`,
      )
    }
    if (stopped)
      console.error('postrider: stopped before the end; the same command goes on, and repeats what was sent')
  }
}

/** On a terminal, and where nothing else is printed meanwhile. */
function progressBar({ dryRun, json }: ReplayRequest) {
  if (!process.stderr.isTTY || dryRun || json) return { setTotal() {}, advance() {}, stop() {} }
  const bar = new SingleBar({
    format: 'replaying {bar} {value}/{total} looked at, {eta_formatted} left',
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  })
  return {
    setTotal: (total: number) => bar.start(total, 0),
    advance: () => bar.increment(),
    stop: () => bar.stop(),
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
