import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { DeletionBook, deletionState, type RecordedDeletion } from '../../core/erasure/deletion-book.ts'
import { DeletionProgress } from '../../core/erasure/deletion-progress.ts'
import { deleteIdPrefix } from '../../core/erasure/deletion.ts'
import type { Erasure } from '../../core/erasure/erasures.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { PostriderError } from '../../errors.ts'
import type { DeletionStatus, DeletionSummary } from './deletions.ts'

/** An erasure as it lies in its topic; `appendedAt` is the broker's, in epoch milliseconds. */
export interface StoredErasure {
  erasure: Erasure
  appendedAt: number
}

export interface LedgerReadOptions {
  /** Epoch milliseconds: what the broker got before is left out. */
  since?: number
  signal?: AbortSignal | undefined
}

export interface DeleteCallSink {
  /** Resolves when there is room for more. */
  write(call: AnalyticsCall): Promise<void>
  /** Resolves once every call is acknowledged by all replicas. */
  flush(): Promise<void>
  /** Idempotent. Does not flush. */
  close(): Promise<void>
}

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface DeletionPorts {
  settings: { readonly state: SettingsState; catchUp(): Promise<void> }
  erasures: {
    /** Resolves once all of them are acknowledged by all replicas. */
    write(erasures: readonly Erasure[]): Promise<void>
    /** Every erasure there is now, in the order in which they were written. */
    read(options: LedgerReadOptions): AsyncIterable<StoredErasure>
  }
  /** A sink for one request, so that its failures affect no other. Close it. */
  openCalls(): DeleteCallSink
  /** The records in `webhooks.deliveries` of calls whose messageIds begin with this prefix. */
  events(messageIdPrefix: string, options: LedgerReadOptions): AsyncIterable<DeliveryEvent>
  /** Who makes the request that is being worked on. */
  actor(): string
  /** Lowercase letters, digits and `-`. */
  newRequestId(at: number): string
  /** Epoch milliseconds. */
  now(): number
}

/** A request's id holds the time of the process that made it; its clock may differ from the brokers' by this. */
const clockSkewMs = 600_000

/** `<time in base 36>-<random>`: by its id a request is found without reading all that came before. */
export function requestIdOf(at: number, random: string): string {
  return `${at.toString(36).padStart(9, '0')}-${random}`
}

function sinceOf(requestId: string): number {
  const time = /^([0-9a-z]{9})-/.exec(requestId)?.[1]
  return time === undefined ? 0 : Math.max(0, parseInt(time, 36) - clockSkewMs)
}

/** The one request (`not_found`), or all that the topic still holds, the oldest first. */
export async function recordedDeletions(
  ports: DeletionPorts,
  requestId: string | null,
  signal?: AbortSignal,
): Promise<RecordedDeletion[]> {
  if (requestId === null) return (await booked(ports, { signal })).all()
  const since = sinceOf(requestId)
  let found = since > 0 ? (await booked(ports, { since, signal }, requestId)).get(requestId) : undefined
  // A clock may have been further off, and others choose other ids.
  if (!found || found.written < found.total)
    found = (await booked(ports, { signal }, requestId)).get(requestId)
  if (found) return [found]
  throw new PostriderError(
    'not_found',
    `there is no deletion ${requestId}; \`postrider deletions list\` shows those of the last 40 days`,
  )
}

async function booked(
  { erasures }: DeletionPorts,
  options: LedgerReadOptions,
  only: string | null = null,
): Promise<DeletionBook> {
  const book = new DeletionBook()
  for await (const { erasure, appendedAt } of erasures.read(options))
    if (only === null || erasure.requestId === only) book.take(erasure, appendedAt)
  return book
}

export async function listDeletions(ports: DeletionPorts, signal?: AbortSignal): Promise<DeletionSummary[]> {
  return (await recordedDeletions(ports, null, signal)).map(summaryOf)
}

/** Reads `webhooks.deliveries` from the request's time on; holds one entry for each of its delete calls. */
export async function showDeletion(
  ports: DeletionPorts,
  requestId: string,
  signal?: AbortSignal,
): Promise<DeletionStatus> {
  const [deletion] = await recordedDeletions(ports, requestId, signal)
  await ports.settings.catchUp()
  const progress = new DeletionProgress(requestId)
  const since = Math.max(0, deletion!.appendedAt - clockSkewMs)
  for await (const event of ports.events(deleteIdPrefix(requestId), { since, signal })) progress.take(event)
  const { destinations } = ports.settings.state
  return {
    ...summaryOf(deletion!),
    progress: progress.summary(deletion!, (id) => destinations.get(id)?.enabled ?? false, ports.now()),
  }
}

function summaryOf(deletion: RecordedDeletion): DeletionSummary {
  const { requestId, at, actor, sources } = deletion
  return {
    requestId,
    at,
    actor,
    users: Math.max(0, ...[...sources.values()].map(({ users }) => users)),
    state: deletionState(deletion),
    sources: [...sources.keys()],
  }
}
