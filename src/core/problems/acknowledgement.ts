import { z } from 'zod'

/** Somebody has seen a problem. It counts until the problem changes. */
export interface Acknowledgement {
  /** The problem's. */
  id: string
  /** Epoch ms. */
  at: number
  /** Who: a token's name, or `cli:<user>@<host>`. */
  by: string
  /** What the problem counted then; null where it counts nothing. */
  size: number | null
}

export const acknowledgementEvents = [
  z.object({
    type: z.literal('problem_acknowledged'),
    id: z.string(),
    at: z.number().int(),
    by: z.string(),
    size: z.number().int().nullable(),
  }),
] as const
export type AcknowledgementEvent = z.output<(typeof acknowledgementEvents)[number]>

export type AcknowledgementCommand = { type: 'acknowledge_problem' } & Acknowledgement

/** As many are remembered: the newest. */
export const maxAcknowledgements = 1_000

/** Ids of those that are forgotten: seen from the map alone, so that all readers agree. */
export function forgottenAcknowledgements(all: ReadonlyMap<string, Acknowledgement>): string[] {
  const tooMany = all.size - maxAcknowledgements
  if (tooMany <= 0) return []
  const oldestFirst = [...all.values()].toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  return oldestFirst.slice(0, tooMany).map(({ id }) => id)
}

/** For how long one lasts where it cannot be known since when its problem has been the same, in ms. */
const lastsMs = 86_400_000

/**
 * Whether a problem is still the one that somebody has seen.
 *
 * @param changedAt since when it has been as it is, epoch ms; null where that is not known
 */
export function isSeen(
  { changedAt, size }: { changedAt: number | null; size: number | null },
  seen: Pick<Acknowledgement, 'at' | 'size'> | undefined,
  now: number,
): boolean {
  if (!seen) return false
  if (size !== null && seen.size !== null && size > seen.size) return false
  return changedAt === null ? now - seen.at < lastsMs : changedAt <= seen.at
}
