import assert from 'node:assert/strict'
import type { DeadLetter, RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { type Deployment, type RunningForwarder } from '../deployment/deployment.ts'
import { until } from '../until.ts'
import { parseExposition, type Samples } from '../exposition.ts'
import { tierDeliveries } from './tier-deliveries.ts'

/** The metrics page of a forwarder as it stands now. */
export function samplesOf(forwarder: RunningForwarder): Samples {
  return parseExposition([...forwarder.counts.expose()].join('')).samples
}

/** The value of a series, 0 while it is not shown: `sampleOf(forwarder, 'postrider_in_flight')`. */
export function sampleOf(forwarder: RunningForwarder, series: string): number {
  return samplesOf(forwarder).get(series) ?? 0
}

/** Resolves once the series has the value, and fails when it goes beyond. */
export async function counted(
  forwarder: RunningForwarder,
  series: string,
  value: number,
  withinMs = 10_000,
): Promise<void> {
  await until(() => sampleOf(forwarder, series) >= value, withinMs, `${series} ${value}`)
  assert.equal(sampleOf(forwarder, series), value, series)
}

export const dispositions = (destination: string, disposition: string): string =>
  `postrider_deliveries_total{destination="${destination}",disposition="${disposition}"}`

/**
 * A source and a destination, of one id unless told otherwise, and a forwarder that knows both. (A call that comes between the two events
 * in the settings log has nobody to go to.)
 */
export async function connect(
  deployment: Deployment,
  forwarder: RunningForwarder,
  given: { id: string } & Parameters<Deployment['destination']>[0],
): Promise<void> {
  await deployment.destination({ source: given.id, ...given })
  const gauge = `postrider_endpoint_in_flight{destination="${given.id}",url_id="u1"}`
  await until(() => samplesOf(forwarder).has(gauge), 30_000, `that the forwarder knows ${given.id}`)
}

/** The one dead letter of the destination, waited for. */
export async function deadLetterOf(
  deployment: Deployment,
  forwarder: RunningForwarder,
  destination: string,
  withinMs = 10_000,
): Promise<DeadLetter> {
  await counted(forwarder, dispositions(destination, 'dead_lettered'), 1, withinMs)
  const deadLetters = await deployment.deadLetters()
  const ours = deadLetters.filter(({ delivery }) => delivery?.destinationId === destination)
  assert.equal(ours.length, 1)
  return ours[0]!
}

/** A delivery in a retry tier, with the time at which it was due. */
export type TierRecord = RetryDelivery & { tier: string; dueAt: number }

/** Everything that the retry tiers of the settings hold for the destination, due or past, in the order they were scheduled. */
export async function tierRecords(deployment: Deployment, destination: string): Promise<TierRecord[]> {
  const records = await Promise.all(
    deployment.config.retryTiers.map(async ({ name, delayMs }) => {
      const deliveries = await tierDeliveries(deployment, name)
      return deliveries.map((each) => ({ ...each, tier: name, dueAt: each.scheduledAt + delayMs }))
    }),
  )
  return records
    .flat()
    .filter(({ destinationId }) => destinationId === destination)
    .sort((a, b) => a.scheduledAt - b.scheduledAt || a.timesScheduled - b.timesScheduled)
}
