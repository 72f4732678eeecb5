import type { Seat } from '../fleet.ts'
import type { FaultKind } from './fault-kinds.ts'
import {
  type Fault,
  type FaultContext,
  type Injection,
  describeMs,
  pause,
  recovered,
  seconds,
  withSeat,
} from './fault.ts'

/** It answers what it has, within the deadline of a batch. */
const stopMs = 20_000
const killAfterMs = 30_000

async function startAgain(context: FaultContext, seat: Seat, after: string): Promise<void> {
  await pause(seconds(context.random, 0, 3))
  await seat.start()
  await recovered(context, [seat], after, 'collector')
}

export const collectorFaults = {
  'collector-killed': {
    lock: 'collector',
    inject: (context) =>
      withSeat(context, [context.collector], async (seat): Promise<Injection> => {
        await seat.kill()
        await startAgain(context, seat, 'it was killed')
        return `${seat.name} killed`
      }),
  },
  'console-killed': {
    lock: 'collector',
    inject: (context) =>
      withSeat(context, [context.console], async (seat): Promise<Injection> => {
        await seat.kill()
        await startAgain(context, seat, 'it was killed')
        return `${seat.name} killed`
      }),
  },
  'collector-stopped': {
    lock: 'collector',
    inject: (context) =>
      withSeat(context, [context.collector], async (seat): Promise<Injection> => {
        const began = performance.now()
        const deadlineMs = stopMs * context.patience
        const { text, inGoodOrder, tookMs } = await seat.terminate(deadlineMs + killAfterMs)
        const how = `${text} after ${describeMs(tookMs)}`
        if ((!inGoodOrder || tookMs > deadlineMs) && !context.infrastructureFailed(began))
          context.finding(`${seat.name} was told to stop: ${how}`)
        await startAgain(context, seat, 'it was stopped')
        return `${seat.name} stopped: ${how}`
      }),
  },
} satisfies Partial<Record<FaultKind, Fault>>
