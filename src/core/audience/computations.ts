import { z } from 'zod'

const kind = z.enum(['audience', 'trait'])
/** An audience has members; a computed trait has a value for some users. Both become properties of users. */
export type ComputationKind = z.output<typeof kind>

const mode = z.enum(['full', 'change', 'farewell'])
/** `full`: the whole list; `change`: only users added and removed; `farewell`: all members leave. */
export type SyncMode = z.output<typeof mode>

export interface OpenSync {
  syncId: string
  mode: SyncMode
  /** Epoch milliseconds. */
  startedAt: number
}

export interface FinishedSync extends OpenSync {
  finishedAt: number
  /** Calls sent with `true` or a value, and with `false` or null. */
  entered: number
  left: number
}

export interface Computation {
  kind: ComputationKind
  id: string
  name: string
  /** The property's name: the snake_case form of the name, as it was at the creation. */
  key: string
  sourceId: string
  /** At most one. One that was cut off stays open until the next sync has finished it. */
  openSync: OpenSync | null
  lastSync: FinishedSync | null
  /** Deleted ones are kept: ids are never reused. */
  deleted: boolean
}

export type Computations = ReadonlyMap<string, Computation>

const text = z.string()
const head = { kind, id: text }
const sync = { ...head, syncId: text, at: z.number().int() }

/** What can have happened to one. Every event names its kind, which is its aggregate's. Times are epoch ms. */
export const computationEvents = [
  z.object({ type: z.literal('computation_created'), ...head, name: text, key: text, sourceId: text }),
  z.object({ type: z.literal('sync_started'), ...sync, mode }),
  z.object({ type: z.literal('sync_finished'), ...sync, entered: z.number(), left: z.number() }),
  z.object({ type: z.literal('computation_deleted'), ...head }),
] as const
export type ComputationEvent = z.output<(typeof computationEvents)[number]>

/** The one that the event is about, after it. Total over what `decide` makes, throws for what no writer of ours can have written. */
export function computationAfter(all: Computations, event: ComputationEvent): Computation {
  const { id, kind } = event
  if (event.type === 'computation_created') {
    const { name, key, sourceId } = event
    return { kind, id, name, key, sourceId, openSync: null, lastSync: null, deleted: false }
  }
  const found = all.get(id)
  if (!found || found.kind !== kind)
    throw new Error(`${event.type} names ${kind} "${id}", which does not exist`)
  return { ...found, ...changes(found, event) }
}

function changes(
  { openSync }: Computation,
  event: Exclude<ComputationEvent, { type: 'computation_created' }>,
): Partial<Computation> {
  switch (event.type) {
    case 'sync_started':
      return { openSync: { syncId: event.syncId, mode: event.mode, startedAt: event.at } }
    case 'sync_finished': {
      const { entered, left, at: finishedAt } = event
      return { openSync: null, lastSync: openSync && { ...openSync, finishedAt, entered, left } }
    }
    case 'computation_deleted':
      return { openSync: null, deleted: true }
  }
}
