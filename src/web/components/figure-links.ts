// Where a figure leads: to the list of what it counts, with its filters in the address.
import { linkTo, pathTo } from '../../console/page-paths.ts'

/** Of which a list is. What is not given, or empty, is any. */
interface Counted {
  /** ISO times, or a duration ago. */
  since?: string
  until?: string
}

const queryOf = (given: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value ? [[name, value]] : [])))

/** @param given `outcome` can be `failed` */
export const attemptsLink = (
  destinationId: string,
  given: Counted & { url?: string; outcome?: string },
): string =>
  `${pathTo('destination', { id: destinationId })}?${new URLSearchParams({ view: 'attempts', ...queryOf({ ...given }) })}`

/** What became of calls otherwise, or has not become yet. */
export const callsLink = (destinationId: string, given: { step: string; reason?: string }): string =>
  `${pathTo('destination', { id: destinationId })}?${new URLSearchParams({ view: 'calls', ...queryOf({ ...given }) })}`

export const deadLettersLink = (given: Counted & { destination?: string; reason?: string }): string =>
  linkTo('deadLetters', queryOf({ ...given }))
