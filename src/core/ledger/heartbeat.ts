// The live state of one process: `schemas/delivery-event.avsc`, Heartbeat.
import type { BreakerPhase } from '../pacing/breaker.ts'

/** One partition that a forwarder reads. */
export interface HeartbeatPartition {
  topic: string
  partition: number
  /** Null while it is not known. */
  lag: number | null
  /** For how long the record that is next has been due; 0 before, or where none waits. Null: not known. */
  overdueMs: number | null
}

/** One URL, as a forwarder paces it. */
export interface HeartbeatEndpoint {
  destinationId: string
  urlId: string
  limit: number
  /** The share of seconds in which it sends: 1, but where one request of each forwarder at a time is too many. */
  turns: number
  inFlight: number
  queued: number
  breaker: BreakerPhase
  /** Epoch milliseconds; null unless its breaker is open or paused. */
  pausedUntil: number | null
  /** When its breaker opened, epoch ms, through all probes that failed since; null while it takes work. */
  downSince: number | null
  /** Epoch ms; null where this process has seen none. */
  lastSuccessAt: number | null
  /** How its last failed attempt ended, while it is down; null otherwise. */
  lastFailure: EndpointFailure | null
}

export interface EndpointFailure {
  at: number
  outcome: string
  /** Null without a response. */
  status: number | null
  /** One line for people. */
  detail: string | null
  /** Of earlier versions only: a response may repeat the call, and no deletion reaches it here. */
  body: Uint8Array | null
}

/** What is known of a process from its start to its end. */
export interface ProcessIdentity {
  instance: string
  roles: string[]
  version: string
  host: string
  pid: number
  /** Epoch milliseconds. */
  startedAt: number
}

export interface Heartbeat extends ProcessIdentity {
  /** Of the heartbeats of the process, from 1. */
  sequence: number
  isLast: boolean
  intervalMs: number
  /** Null without a collector. */
  requestsInFlight: number | null
  partitions: HeartbeatPartition[]
  endpoints: HeartbeatEndpoint[]
  endpointsOmitted: number
  /**
   * By which version of the settings it works; 0 while that is not known. Of a forwarder, all that it held under an
   * earlier version is committed, so whoever reads the ledger after this heartbeat finds it there.
   */
  settingsVersion: number
}

export const maxHeartbeatEndpoints = 1_000

/** The endpoints that a heartbeat names: those in trouble first, then those at work, then the others. */
export function namedEndpoints(
  all: Iterable<HeartbeatEndpoint>,
  max = maxHeartbeatEndpoints,
): Pick<Heartbeat, 'endpoints' | 'endpointsOmitted'> {
  const ranks: HeartbeatEndpoint[][] = [[], [], []]
  let count = 0
  for (const endpoint of all) {
    count++
    const rank = ranks[rankOf(endpoint)]!
    if (rank.length < max) rank.push(endpoint)
  }
  const endpoints = ranks.flat().slice(0, max)
  return { endpoints, endpointsOmitted: count - endpoints.length }
}

function rankOf({ breaker, inFlight, queued }: HeartbeatEndpoint): number {
  if (breaker !== 'closed') return 0
  return inFlight + queued > 0 ? 1 : 2
}
