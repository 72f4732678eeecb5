/**
 * What a token is limited to: ids of sources and destinations, each as it is, or with a `*` at its end for all that begin
 * so. Null: everything.
 */
export type Reach = readonly string[] | null

export const maxReach = 50

/** As flags and files have it, without the null. */
export const reachPattern = /^[a-z0-9_-]{1,64}\*?$/

/** Whether a source or destination of this id is within it. */
export const reaches = (reach: Reach, id: string): boolean =>
  reach === null ||
  reach.some((each) => (each.endsWith('*') ? id.startsWith(each.slice(0, -1)) : each === id))

/** What is wrong with one; null where nothing is. */
export function reachFault(reach: readonly string[]): string | null {
  if (reach.length === 0) return 'at least one id is needed'
  if (reach.length > maxReach) return `${reach.length} ids are given, at most ${maxReach} are allowed`
  const wrong = reach.find((each) => !reachPattern.test(each))
  if (wrong === undefined) return null
  return `${JSON.stringify(wrong)} is no id of a source or destination, and no beginning of one with a * behind it`
}
