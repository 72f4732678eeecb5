import { methodPatch } from './patch.ts'

interface Runner {
  running: boolean
  fetchManager: { stop(): Promise<unknown> }
}

/**
 * A consumer of kafkajs ends the fetchers that it has when it is stopped. Where it just then replaces them, because the
 * brokers that it knows have changed, nobody ends the new ones: each asks a runner that answers "nothing" at once,
 * again and again without a pause, and the whole process stands still. Now the first such question ends them.
 */
export const endFetchersWhenStopped = methodPatch({
  name: 'end-fetchers-when-stopped',
  file: 'src/consumer/runner',
  method: 'fetch',
  fields: { running: 'boolean', fetchManager: 'object', 'fetchManager.stop': 'function' },
  madeWith: { concurrency: 1 },
  instead(this: Runner, fetch: (nodeId: unknown) => Promise<unknown[]>, nodeId: unknown) {
    // It resolves once the fetchers have ended, and they end once this question is answered: nobody may wait for it.
    if (!this.running) void this.fetchManager.stop()
    return fetch.call(this, nodeId)
  },
})
