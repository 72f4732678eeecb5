// What became of dead letters since: whether a replay sent them again, which, and how that ended.
import { urlIdOf } from '../../core/delivery/delivery.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import type { DeliveryState } from '../../core/ledger/delivery-life.ts'
import { replayOfStep } from '../why/describe.ts'
import type { FactsOptions, MessagePorts } from '../why/facts.ts'
import { livesOf, type MessageLife } from '../why/why.ts'
import type { StoredDeadLetter } from './dead-letters.ts'

export interface SentAgain {
  /** Epoch ms. */
  at: number
  /** Null where a version sent it that named none. */
  replay: string | null
  /** What became of the delivery. */
  state: DeliveryState
  /** When it came to that, epoch ms; null while it has not. */
  endedAt: number | null
}

/** Of a dead letter, what it is found again by. */
export interface FailedDelivery {
  messageId: string
  destinationId: string
  urlId: string | null
  /** Epoch ms. */
  failedAt: number
}

/** Null where it never became a delivery. */
export function failedDeliveryOf({ deadLetter, failedAt }: StoredDeadLetter): FailedDelivery | null {
  const delivery = deadLetter?.delivery
  if (!delivery) return null
  const { messageId, destinationId } = delivery
  return { messageId, destinationId, urlId: urlIdOf(delivery), failedAt }
}

/** Of each, the newest; null where it was not sent again since it failed, or that is not known any more. */
export async function sentAgain(
  failed: readonly (FailedDelivery | null)[],
  ports: MessagePorts,
  options: FactsOptions,
): Promise<(SentAgain | null)[]> {
  const ids = new Set(failed.flatMap((each) => each?.messageId ?? []))
  const lives = ids.size === 0 ? [] : await livesOf([...ids], ports, options)
  const known = new Map(lives.map((life) => [life.messageId, life]))
  return failed.map((each) => each && ofOne(each, known.get(each.messageId)!))
}

function ofOne({ destinationId, urlId, failedAt }: FailedDelivery, life: MessageLife): SentAgain | null {
  const found = life.copies.flatMap((copy): SentAgain[] => {
    const ended = copy.life?.deliveries.find(
      (each) => each.destinationId === destinationId && each.urlId === urlId,
    )
    const replay = copy.life?.steps
      .filter((step) => step.kind === 'retry')
      .findLast(
        (step) => step.at >= failedAt && step.destinationId === destinationId && step.ofUrlId === urlId,
      )
    if (!ended || !replay) return []
    return [{ at: replay.at, replay: replayOfStep(replay), state: ended.state, endedAt: ended.at }]
  })
  return found.sort((a, b) => a.at - b.at).at(-1) ?? null
}

export const sentAgainView = (sent: SentAgain | null): object | null =>
  sent && { ...sent, at: isoOf(sent.at), endedAt: isoOrNull(sent.endedAt) }
