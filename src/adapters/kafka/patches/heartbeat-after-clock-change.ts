import { methodPatch } from './patch.ts'

interface ConsumerGroup {
  /** When the last heartbeat was answered, by the system's clock. */
  lastRequest: number
}

/**
 * kafkajs sends a heartbeat once the system's clock is an interval beyond the last one, hence none for an hour after a
 * clock that was an hour ahead is set right. Now a last heartbeat that lies in the future counts as one of long ago.
 */
export const heartbeatAfterClockChange = methodPatch({
  name: 'heartbeat-after-clock-change',
  file: 'src/consumer/consumerGroup',
  method: 'heartbeat',
  fields: { lastRequest: 'number' },
  instead(this: ConsumerGroup, heartbeat: (options: unknown) => Promise<void>, options: unknown) {
    if (this.lastRequest > Date.now()) this.lastRequest = 0
    return heartbeat.call(this, options)
  },
})
