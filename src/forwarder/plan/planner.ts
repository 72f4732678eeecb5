import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { TierRecord } from '../../core/delivery/deferred-run.ts'
import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { SuppressibleCall } from '../../core/suppression/suppressions.ts'
import { PostriderError, stackOf } from '../../errors.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import type { Dispatcher } from '../send/dispatcher.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'
import type { EndpointDeferral, Settler } from '../settle/settler.ts'
import type { Suppressed } from './erased.ts'
import type { Routing } from './routing.ts'
import type { SchemaLoader } from './schema-loader.ts'
import type { SettingsCatchUp } from './settings-catch-up.ts'

/** Plans the head of a partition, or returns what it waits for. Must not be called on an empty partition. */
export interface Planner {
  planNext(partition: AssignedPartition): Block | null
  /** The endpoints that a record behind the head needs; empty when that is not known yet. May throw. */
  endpointsOf(record: FetchedRecord, topic: string): readonly EndpointQueue[]
}

/** What planning calls and planning retries have in common. */
export interface PlannerParts {
  schemas: SchemaLoader
  routing: Routing
  catchUp: SettingsCatchUp
  dispatcher: Dispatcher
  settler: Settler
  budget: MemoryBudget
  suppressed: Suppressed
}

/** A record that cannot become a delivery. */
export class Refusal extends Error {
  readonly reason: DeadLetterReason

  constructor(reason: DeadLetterReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

/** Throws what makes a dead letter of a batch that cannot be read. */
export function requireReadable({ problem }: FetchedRecord): void {
  if (problem !== null) throw new Refusal('undecodable', problem)
}

/** Reason and detail of the dead letter for a thrown error: bugs of ours with their stack. */
export function refusalOf(error: unknown): { reason: DeadLetterReason; detail: string } {
  if (error instanceof Refusal) return { reason: error.reason, detail: error.message }
  if (error instanceof PostriderError && error.code === 'undecodable') {
    return { reason: 'undecodable', detail: error.message }
  }
  return { reason: 'internal_error', detail: stackOf(error) }
}

/** The first endpoint that has no room for one more and must be waited for. */
export function fullEndpoint(
  endpoints: readonly EndpointQueue[],
  retry: boolean,
  now: number,
): EndpointQueue | null {
  for (const endpoint of endpoints) {
    if (endpoint.admission.isFull(retry, now) && !endpoint.admission.defers(now)) return endpoint
  }
  return null
}

/** Whether none of the endpoints takes anything at present. */
export function isRefusedByAll(endpoints: readonly EndpointQueue[], isRetry: boolean, now: number): boolean {
  for (const { admission } of endpoints) if (admission.refuses(isRetry, now) === null) return false
  return endpoints.length > 0
}

/** Defers `count` deliveries that all of the endpoints refuse. */
export const deferralsOf = (
  endpoints: readonly EndpointQueue[],
  isRetry: boolean,
  count: number,
  now: number,
): EndpointDeferral[] =>
  endpoints.map((endpoint) => ({
    endpointId: endpoint.id,
    deferral: endpoint.deferred(isRetry, count, now),
  }))

/** A Kafka key as a delivery carries it: one character a byte. */
export const keyOf = (key: Buffer | null): string | null => (key === null ? null : key.toString('latin1'))

/** Decodes without waiting where it can. */
export interface RecordDecoder<T> {
  /** Undefined when the writer's schema is not known yet: `load` it first. Throws `undecodable`. */
  tryDecode(value: Buffer | null): T | undefined
  /** Throws `registry_unavailable` (try again) or `undecodable` (final). */
  load(value: Buffer): Promise<void>
}

export interface Decoders {
  calls: RecordDecoder<AnalyticsCall>
  /** All tiers share one schema. */
  retries: RecordDecoder<TierRecord>
}

/** The settings, live. */
export interface SettingsSource {
  readonly state: SettingsState
  onChange(listener: (state: SettingsState) => void): void
  /** Resolves once everything that lay in the log at the time of the call is folded. */
  catchUp(): Promise<void>
}

/** The users erased by deletion requests, live. */
export interface ErasureSource {
  /** No user was erased. */
  readonly isEmpty: boolean
  covers(call: ErasableCall): boolean
  /** Null when everything is folded that was appended up to a moment ago; otherwise what to wait for before checking again. */
  pending(): Promise<void> | null
}

/** The suppressed users, live. */
export interface SuppressionSource {
  /** No user is suppressed. */
  readonly isEmpty: boolean
  covers(call: SuppressibleCall): boolean
  /** As an ErasureSource's. */
  pending(): Promise<void> | null
}
