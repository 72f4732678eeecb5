import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import { addRollup, spanMs, type RollupCounts, type RollupSubject } from '../../core/statistics/rollup.ts'
import type { Points } from '../../core/statistics/period.ts'
import {
  attemptFiguresOf,
  collectedFiguresOf,
  deliveryCountsOf,
  destinationFiguresOf,
  sourceFiguresOf,
} from '../../core/statistics/views.ts'
import type { StatisticsStore } from './statistics-store.ts'

interface Folded {
  total: RollupCounts
  points: { at: number; counts: RollupCounts }[]
}

/** Every point of the period, also those without counts. */
function foldedOf(series: readonly { at: number; counts: RollupCounts }[], period: Points): Folded {
  const { from, to, stepMs } = period
  const points: Folded['points'] = []
  for (let at = from; at < to; at += stepMs) points.push({ at, counts: {} })
  const total: RollupCounts = {}
  for (const { at, counts } of series) {
    addRollup(total, counts)
    addRollup(points[Math.floor((at - from) / stepMs)]!.counts, counts)
  }
  return { total, points }
}

function headOf(store: StatisticsStore, { from, to, stepMs }: Points) {
  const { asOf, since } = store.reach()
  return {
    from: isoOf(from),
    to: isoOf(to),
    stepSeconds: stepMs / 1_000,
    asOf: isoOrNull(asOf),
    knownSince: isoOrNull(since),
  }
}

/** What became of deliveries to a destination, and of the attempts at its URLs. */
export function destinationStats(store: StatisticsStore, id: string, period: Points) {
  const { total, points } = foldedOf(store.series({ kind: 'destination', id }, period), period)
  return {
    destinationId: id,
    ...headOf(store, period),
    totals: destinationFiguresOf(total),
    points: points.map(({ at, counts }) => ({
      at: isoOf(at),
      ...deliveryCountsOf(counts),
      ...attemptFiguresOf(counts),
    })),
  }
}

/** What collectors took and refused of a source. */
export function sourceStats(store: StatisticsStore, id: string, period: Points) {
  const { total, points } = foldedOf(store.series({ kind: 'source', id }, period), period)
  return {
    sourceId: id,
    ...headOf(store, period),
    totals: collectedFiguresOf(total),
    points: points.map(({ at, counts }) => ({ at: isoOf(at), ...sourceFiguresOf(counts) })),
  }
}

/** All destinations and all sources together. */
export function totalStats(store: StatisticsStore, period: Points) {
  const deliveries = foldedOf(store.totals('destination', period), period)
  const collected = foldedOf(store.totals('source', period), period)
  const figures = (ofDeliveries: RollupCounts, ofCollected: RollupCounts) => ({
    ...sourceFiguresOf(ofCollected),
    ...deliveryCountsOf(ofDeliveries),
    ...attemptFiguresOf(ofDeliveries),
  })
  return {
    ...headOf(store, period),
    totals: figures(deliveries.total, collected.total),
    points: deliveries.points.map(({ at, counts }, index) => ({
      at: isoOf(at),
      ...figures(counts, collected.points[index]!.counts),
    })),
  }
}

export type TotalStats = ReturnType<typeof totalStats>
export type DestinationStats = ReturnType<typeof destinationStats>
export type SourceStats = ReturnType<typeof sourceStats>

/** By id, sums of a period of whole minutes; of its whole hours those are read. */
export function sumsBetween(
  store: StatisticsStore,
  kind: RollupSubject['kind'],
  { from, to }: { from: number; to: number },
): Map<string, RollupCounts> {
  const firstHour = Math.ceil(from / spanMs.hour) * spanMs.hour
  const lastHour = Math.floor(to / spanMs.hour) * spanMs.hour
  if (firstHour >= lastHour) return store.sums(kind, { span: 'minute', from, to })
  const sums = store.sums(kind, { span: 'hour', from: firstHour, to: lastHour })
  for (const [start, end] of [
    [from, firstHour],
    [lastHour, to],
  ] as const)
    for (const [id, counts] of store.sums(kind, { span: 'minute', from: start, to: end })) {
      const sum = sums.get(id) ?? {}
      addRollup(sum, counts)
      sums.set(id, sum)
    }
  return sums
}

/** The last minutes up to now; its first minute is whole. */
export const lastMinutes = (windowMs: number, now: number) => {
  const to = Math.floor(now / spanMs.minute) * spanMs.minute + spanMs.minute
  return { from: to - spanMs.minute - windowMs, to }
}
