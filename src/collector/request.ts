import type { Reservation } from './request-budget.ts'
import type { CallRoute } from './routes.ts'

/** The write keys of a request's head; null where it has none. */
export interface HeadKeys {
  basicKey: string | null
  bearerKey: string | null
  queryKey: string | null
}

/** A request of the tracking API, taken apart as far as HTTP goes. */
export interface CollectRequest {
  keys: HeadKeys
  route: CallRoute
  /** The body. */
  text: string
  /** The caller's address; '' when it could not be told. */
  ip: string
  /** Who sent it, as far as shares and limits go: all addresses of one IPv6 network are one sender. */
  sender: string
  /** The trace that the request came with, valid; null where it has none. */
  traceparent: string | null
  /** What this request takes of the collector's budget; released by the caller, once there is an answer. */
  reservation: Reservation
}
