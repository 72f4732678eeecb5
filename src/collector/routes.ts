import type { CallType } from '../core/call/analytics-call.ts'

/** What a path of the tracking API takes. */
export interface CallRoute {
  /** Null on the routes of batches, whose calls say it themselves. */
  type: CallType | null
  isBatch: boolean
  /** Whether the client's clock is corrected: an import's times are history. */
  correctsClock: boolean
  /** The routes of browsers: the key may be in the query, and the caller's address is the user's. */
  isClientSide: boolean
}

const types = ['identify', 'track', 'page', 'screen', 'group', 'alias'] as const

const callRoute = (type: CallType, isClientSide: boolean): CallRoute => ({
  type,
  isBatch: false,
  correctsClock: true,
  isClientSide,
})
const batch: CallRoute = { type: null, isBatch: true, correctsClock: true, isClientSide: false }

/** By path, in lower case. */
export const postRoutes: ReadonlyMap<string, CallRoute> = new Map([
  ...types.map((type) => [`/v1/${type}`, callRoute(type, false)] as const),
  ...types.map((type) => [`/v1/${type[0]!}`, callRoute(type, true)] as const),
  ['/v1/batch', batch],
  ['/v1/import', { ...batch, correctsClock: false }],
  ['/v1/b', { ...batch, isClientSide: true }],
  // Where RudderStack's SDK for browsers sends beacons.
  ['/beacon/v1/batch', { ...batch, isClientSide: true }],
])

/** By the path's last part, in lower case: `/v1/pixel/{type}`. */
export const pixelRoutes: ReadonlyMap<string, CallRoute> = new Map(
  types.flatMap((type) => [
    [type, callRoute(type, true)] as const,
    [type[0]!, callRoute(type, true)] as const,
  ]),
)
