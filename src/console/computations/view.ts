import type { Computation, OpenSync } from '../../core/audience/computations.ts'

interface SyncView {
  syncId: string
  mode: string
  /** ISO 8601. */
  startedAt: string
}

/** An audience or computed trait as it is shown. */
export interface ComputationView {
  id: string
  name: string
  /** The property by which destinations get it. */
  key: string
  sourceId: string
  /** Running, or interrupted: the next sync finishes it first. */
  openSync: SyncView | null
  lastSync: (SyncView & { finishedAt: string; entered: number; left: number }) | null
}

export function computationView(computation: Computation): ComputationView {
  const { id, name, key, sourceId, openSync, lastSync } = computation
  return {
    id,
    name,
    key,
    sourceId,
    openSync: openSync && syncView(openSync),
    lastSync: lastSync && {
      ...syncView(lastSync),
      finishedAt: new Date(lastSync.finishedAt).toISOString(),
      entered: lastSync.entered,
      left: lastSync.left,
    },
  }
}

const syncView = ({ syncId, mode, startedAt }: OpenSync): SyncView => ({
  syncId,
  mode,
  startedAt: new Date(startedAt).toISOString(),
})
