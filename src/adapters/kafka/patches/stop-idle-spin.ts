import { methodPatch } from './patch.ts'

interface RequestQueue {
  pending: unknown[]
  /** In ms of `Date.now()`; -1 while nothing was ever throttled. */
  throttledUntil: number
}

/**
 * kafkajs checks the request queue of each connection by a timer whose delay is negative while no broker throttles: Node
 * warns, and runs the check every millisecond. Now the timer is set only while a request waits or the broker throttles
 * us. Otherwise there is nothing to check: a new request looks at the queue by itself, and so does each response.
 */
export const stopIdleSpin = methodPatch({
  name: 'stop-idle-spin',
  file: 'src/network/requestQueue',
  method: 'scheduleCheckPendingRequests',
  fields: { pending: 'array', throttledUntil: 'number' },
  instead(this: RequestQueue, schedule: () => void) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this)
  },
})
