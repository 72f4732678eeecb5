/** An audience has members; a computed trait has a value for some users. Both become properties of users. */
export type ComputationKind = 'audience' | 'trait'

/** `full`: the whole list; `change`: only users added and removed; `farewell`: all members leave. */
export type SyncMode = 'full' | 'change' | 'farewell'

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

/** What can have happened to one. Every event names its kind, which is its aggregate's. */
export type ComputationEvent = { kind: ComputationKind; id: string } & (
  | { type: 'computation_created'; name: string; key: string; sourceId: string }
  | { type: 'sync_started'; syncId: string; mode: SyncMode; at: number }
  | { type: 'sync_finished'; syncId: string; at: number; entered: number; left: number }
  | { type: 'computation_deleted' }
)

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
