import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'

/** As forwarders write them: where the call came from, and the trace it belongs to. */
export const headersOf = (
  record: StoredRecord,
  { topic, partition, offset }: { topic: string; partition: number; offset: number },
): Record<string, string> => ({
  'postrider-origin': `${topic}/${partition}/${offset}`,
  ...traceOf(record),
})

/** The trace alone. */
export function traceOf({ headers: { traceparent } }: StoredRecord): Record<string, string> {
  if (traceparent === undefined || Array.isArray(traceparent)) return {}
  return {
    traceparent: typeof traceparent === 'string' ? traceparent : Buffer.from(traceparent).toString(),
  }
}
