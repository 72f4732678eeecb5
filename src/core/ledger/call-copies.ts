import { placeKey, type Place, type Trace } from './trace.ts'

/** One record of the calls topic with this messageId, and what the ledger records of it. */
export interface TracedCopy {
  place: Place
  traces: Trace[]
}

/**
 * Sorts traces of one messageId by the copy that they are of: by the call's own record. What a tier's record led to is
 * of the copy that the tier's record came from; where retention took that record, it is of the copy that there is, if
 * there is just one, and else of none.
 *
 * @param calls records of the calls topic that are there
 */
export function copiesOf(
  calls: readonly Place[],
  callsTopic: string,
  traces: readonly Trace[],
): { copies: TracedCopy[]; strays: Trace[] } {
  const copies = new Map<string, TracedCopy>()
  const copyAt = (place: Place): TracedCopy => {
    const key = placeKey(place)
    let copy = copies.get(key)
    if (!copy) copies.set(key, (copy = { place, traces: [] }))
    return copy
  }
  for (const place of calls) copyAt(place)
  const origins = new Map<string, Place>()
  for (const trace of traces) if (trace.kind === 'retry') origins.set(placeKey(trace.place), trace.origin)
  const originOf = (place: Place): Place | null =>
    place.topic === callsTopic ? place : (origins.get(placeKey(place)) ?? null)
  const homeless: Trace[] = []
  for (const trace of traces) {
    const origin = originOf(trace.kind === 'retry' || trace.kind === 'dead_letter' ? trace.origin : trace.of)
    if (origin) copyAt(origin).traces.push(trace)
    else homeless.push(trace)
  }
  const found = [...copies.values()]
  if (found.length !== 1) return { copies: found, strays: homeless }
  found[0]!.traces.push(...homeless)
  return { copies: found, strays: [] }
}
