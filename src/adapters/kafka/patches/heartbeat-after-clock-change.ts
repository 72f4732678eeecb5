import { silentLogger, type Patch } from './patch.ts'

interface ConsumerGroup {
  /** When the last heartbeat was answered, by the system's clock. */
  lastRequest: number
  heartbeat(options: { interval: number }): Promise<void>
}

const file = 'src/consumer/consumerGroup'

/**
 * kafkajs sends a heartbeat once the system's clock is an interval beyond the last one. After a clock that was an hour
 * ahead is set right it sends none for an hour: the broker removes the member, which does not notice. None known
 * upstream.
 *
 * Now a last heartbeat that lies in the future counts as one of long ago.
 */
export const heartbeatAfterClockChange: Patch = {
  name: 'heartbeat-after-clock-change',
  targets: [
    {
      file,
      members: { 'prototype.heartbeat': 'function' },
      fields: { args: [{ logger: silentLogger }], kinds: { lastRequest: 'number' } },
    },
  ],
  install(load) {
    const { prototype } = load(file) as { prototype: ConsumerGroup }
    const { heartbeat } = prototype
    prototype.heartbeat = function (this: ConsumerGroup, options) {
      if (this.lastRequest > Date.now()) this.lastRequest = 0
      return heartbeat.call(this, options)
    }
  },
}
