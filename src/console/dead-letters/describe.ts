// Dead letters as the admin API and `--json` show them.
import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import { statusOf } from '../../core/delivery/dead-letter-filter.ts'
import type { Origin } from '../../core/delivery/delivery.ts'
import type { StoredDeadLetter } from './dead-letter-store.ts'

export function summaryOf({ id, deadLetter, problem, failedAt }: StoredDeadLetter): object {
  const delivery = deadLetter?.delivery
  return {
    id,
    failedAt: isoOf(failedAt),
    reason: deadLetter?.reason ?? null,
    detail: deadLetter ? deadLetter.detail : problem,
    deliveryId: delivery?.id ?? null,
    messageId: delivery?.messageId ?? null,
    sourceId: delivery?.sourceId ?? null,
    destinationId: delivery?.destinationId ?? null,
    type: delivery?.type ?? null,
    attempts: delivery?.attempts ?? null,
    status: statusOf(deadLetter),
    origin: deadLetter && placeOf(deadLetter.origin),
  }
}

/** Everything, with bytes as `{text}` where they are UTF-8 and as `{base64}` where they are not. */
export function jsonOf(stored: StoredDeadLetter): object {
  const { deadLetter, record } = stored
  if (!deadLetter) return { ...summaryOf(stored), value: record.value && jsonBytes(record.value) }
  const { delivery, raw, rawKey, failedAt, origin, from, ...rest } = deadLetter
  return {
    id: stored.id,
    failedAt: isoOf(failedAt),
    ...rest,
    origin: placeOf(origin),
    from: from && placeOf(from),
    delivery: delivery && {
      ...delivery,
      origin: placeOf(delivery.origin),
      body: jsonBytes(delivery.body),
      firstAttemptAt: isoOrNull(delivery.firstAttemptAt),
      firstScheduledAt: isoOrNull(delivery.firstScheduledAt),
      notBefore: isoOrNull(delivery.notBefore),
      outcomes: delivery.outcomes.map((outcome) => ({ ...outcome, at: isoOf(outcome.at) })),
      lastResponse: delivery.lastResponse && {
        ...delivery.lastResponse,
        at: isoOf(delivery.lastResponse.at),
        body: jsonBytes(delivery.lastResponse.body),
      },
      key: record.key && jsonBytes(record.key),
    },
    raw: raw && jsonBytes(raw),
    rawKey: rawKey && jsonBytes(rawKey),
  }
}

const placeOf = (origin: Origin): object => ({ ...origin, appendedAt: isoOrNull(origin.appendedAt) })

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Null for what is not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

function jsonBytes(bytes: Uint8Array): object {
  const text = textOf(bytes)
  return text === null ? { base64: Buffer.from(bytes).toString('base64') } : { text }
}
