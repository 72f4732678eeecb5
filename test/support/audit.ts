// What `postrider audit` finds, and what the ledger says in sum: the tallies on each partition's chain.
import { commitsOf } from '../../src/adapters/kafka/group/committed-offsets.ts'
import { openAuditSource } from '../../src/operators/audit/kafka.ts'
import { SqliteKeySet } from '../../src/operators/audiences/staged-list.ts'
import { audit } from '../../src/operators/audit/audit.ts'
import type { AuditReport } from '../../src/core/ledger/audit-report.ts'
import type { DeliveryEvent } from '../../src/core/ledger/delivery-event.ts'
import { LedgerChain, type Fact } from '../../src/core/ledger/ledger-chain.ts'
import { countFields } from '../../src/core/ledger/result-codes.ts'
import type { ReasonCount, Tally } from '../../src/core/ledger/tally.ts'
import { fromPairs, decodeFinished, tallyIdOf } from '../../src/core/offsets/offset-runs.ts'
import type { Deployment } from './deployment/deployment.ts'
import { silentLog } from './silent-log.ts'
import { until } from './until.ts'

/** What `postrider audit` finds in the deployment now. Forwarders may run. */
export function auditOf(
  { kafka, topics, config, codecs }: Deployment,
  { since = null, until = null }: { since?: number | null; until?: number | null } = {},
): Promise<AuditReport> {
  const log = silentLog
  const source = openAuditSource({ kafka, topics, groupId: config.groupId, codecs, log })
  return audit(source, () => new SqliteKeySet(), { since, until })
}

/** What it finds once no retry waits any more, or something is wrong. */
export async function settledAudit(deployment: Deployment): Promise<AuditReport> {
  await deployment.drained(60_000)
  let report = await auditOf(deployment)
  await until(
    async () => {
      report = await auditOf(deployment)
      return !report.ok || report.destinations.every(({ waiting }) => waiting === 0)
    },
    60_000,
    'that nothing waits',
  )
  return report
}

/** Sums of one destination; what is zero is left out. */
export interface DestinationSums {
  counts: Record<string, number>
  skipped: Record<string, number>
  dead: Record<string, number>
  /** By URL: how its attempts ended. */
  attempts: Record<string, Record<string, number>>
  /** By URL: attempts in each bucket of durations. */
  durations: Record<string, number[]>
}

/** By destination; `none` stands for records without one. */
export type LedgerSums = Record<string, DestinationSums>

function add(sums: Record<string, number>, key: string, count: number): void {
  if (count > 0) sums[key] = (sums[key] ?? 0) + count
}

const addReasons = (sums: Record<string, number>, reasons: readonly ReasonCount[]) => {
  for (const { reason, count } of reasons) add(sums, reason, count)
}

export function sumOf(tallies: Iterable<Pick<Tally, 'counts'>>): LedgerSums {
  const sums: LedgerSums = {}
  for (const { counts } of tallies) {
    for (const each of counts) {
      const sum = (sums[each.destinationId ?? 'none'] ??= {
        counts: {},
        skipped: {},
        dead: {},
        attempts: {},
        durations: {},
      })
      for (const field of countFields) add(sum.counts, field, each[field])
      addReasons(sum.skipped, each.skipReasons)
      addReasons(sum.dead, each.deadLetterReasons)
      for (const { urlId, outcomes, durations } of each.endpoints) {
        const attempts = (sum.attempts[urlId] ??= {})
        for (const { outcome, count } of outcomes) add(attempts, outcome, count)
        const before = sum.durations[urlId] ?? durations.map(() => 0)
        sum.durations[urlId] = durations.map((count, index) => count + before[index]!)
      }
    }
  }
  return sums
}

export async function ledgerEvents({ read, topics, codecs }: Deployment): Promise<DeliveryEvent[]> {
  const records = await read(topics.deliveries)
  return Promise.all(records.map(({ value }) => codecs.deliveries.decode(value)))
}

/** A tally that counts, and the partition that it is of. */
export interface TallyOf {
  topic: string
  partition: number
  tally: Tally
}

/** All tallies that the committed metadata leads back to, of calls and tiers; faults in a chain throw. */
export async function ledgerFacts(deployment: Deployment): Promise<TallyOf[]> {
  const { admin, config, topics } = deployment
  const tiers = config.retryTiers.map(({ name }) => topics.retry(name))
  const commits = [
    ...(await commitsOf(admin, config.groupId, [topics.calls])),
    ...(await commitsOf(admin, `${config.groupId}.retries`, tiers)),
  ]
  const events = await ledgerEvents(deployment)
  const facts: TallyOf[] = []
  for (const { topic, partition, position, metadata } of commits) {
    const committed = position === null ? null : { position, runs: decodeFinished(position, metadata) }
    const chain = new LedgerChain(committed, tallyIdOf(metadata), () => ({
      add: ({ tally }: Fact) => void facts.push({ topic, partition, tally }),
    }))
    for (const { tally, topic: of, partition: its, at } of events)
      if (tally && of === topic && its === partition) chain.add(tally, at)
    const { faults } = chain.end()
    if (faults.length > 0) throw new Error(`${topic}/${partition}: ${JSON.stringify(faults)}`)
  }
  return facts
}

/** The sum over these tallies. */
export const ledgerSums = async (deployment: Deployment): Promise<LedgerSums> =>
  sumOf((await ledgerFacts(deployment)).map(({ tally }) => tally))

/** What pauses of a destination held, as `partition/offset`, each time that a tally names it, in order. */
export async function heldPlaces(
  deployment: Deployment,
  destinationId: string,
  topic = deployment.topics.calls,
): Promise<string[]> {
  const facts = await ledgerFacts(deployment)
  return facts
    .filter((fact) => fact.topic === topic)
    .flatMap(({ partition, tally: { held, start } }) =>
      held
        .filter((each) => each.destinationId === destinationId)
        .flatMap(({ offsets }) => fromPairs(offsets, start)!)
        .flatMap((run) =>
          Array.from({ length: run.end - run.start }, (_, index) => `${partition}/${run.start + index}`),
        ),
    )
    .sort()
}

export const sumOfValues = (counts: Record<string, number>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
