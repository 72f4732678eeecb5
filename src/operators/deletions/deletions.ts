import type { Lease } from '../lease.ts'
import { RequestKeyReused } from '../settings/writer.ts'
import { type DeletionState, deletionState } from '../../core/erasure/deletion-book.ts'
import type { SourceProgress } from '../../core/erasure/deletion-progress.ts'
import type { RequestKey } from '../../core/settings/commands.ts'
import { recordedDeletions, requestIdOf, type DeletionPorts } from './history.ts'
import { requestDeletion, resumeDeletions, wholeReport } from './request.ts'

export interface DeletionOptions {
  /** Called once, after the request was checked and before anything is written. */
  onStart?: (requestId: string) => void
  onProgress?: (phase: 'erasing' | 'notifying', done: number, total: number) => void
  /** Ends it before anything is written, or once all users are erased: then `resume` goes on. */
  signal?: AbortSignal
}

/** The result of a request that was written completely. */
export interface DeletionReport {
  requestId: string
  users: number
  sources: { sourceId: string; notified: boolean }[]
  /** Delete calls that were written. */
  deleteCalls: number
}

export interface ResumeReport {
  requestId: string
  /** Delete calls that were written, those among them that had been written before. */
  deleteCalls: number
  /** Erasures that were never written: their users have to be given again. */
  missing: number
}

export interface DeletionSummary {
  requestId: string
  at: number
  /** Null where it is not recorded. */
  actor: string | null
  users: number
  /** A request that is being written at this moment is `cut_off` and then `interrupted`, too. */
  state: DeletionState
  sources: string[]
}

export interface DeletionStatus extends DeletionSummary {
  progress: SourceProgress[]
}

/** Deletion requests, for commands and API alike. */
export interface Deletions {
  /**
   * Erases the users at the sources (all of them unless some are named) and notifies their destinations. Throws
   * UsersRefused before anything is written; `kafka_unavailable` when it was interrupted.
   */
  request(
    given: { userIds: readonly string[]; sourceIds?: readonly string[] | null | undefined },
    options?: DeletionOptions & { place?: (index: number) => string },
  ): Promise<DeletionReport>
  /** As `request`, of one that may come again, to any process. Throws RequestKeyReused and `conflict`, too. */
  requestOnce(
    given: Parameters<Deletions['request']>[0],
    key: RequestKey,
    options?: Parameters<Deletions['request']>[1],
  ): Promise<{ report: DeletionReport; repeated: boolean }>
  /** Finishes what was interrupted: one request (`not_found`), or every one; nothing happens to finished ones. */
  resume(requestId?: string | null, options?: DeletionOptions): Promise<ResumeReport[]>
  /** The oldest first. */
  list(signal?: AbortSignal): Promise<DeletionSummary[]>
  /** Throws `not_found`. */
  show(requestId: string, signal?: AbortSignal): Promise<DeletionStatus>
}

// As JSON, for the admin API and `--json` alike.
export const summaryOf = ({ requestId, at, actor, users, state, sources }: DeletionSummary) => ({
  id: requestId,
  requestedAt: new Date(at).toISOString(),
  actor,
  users,
  state,
  sources,
})

export const statusOf = (status: DeletionStatus) => ({ ...summaryOf(status), progress: status.progress })

export const reportOf = ({ requestId, ...report }: DeletionReport) => ({ id: requestId, ...report })

export const resumedOf = ({ requestId, ...report }: ResumeReport) => ({ id: requestId, ...report })

export interface OncePorts extends DeletionPorts {
  /** One holder of a key at a time, over all processes. Throws `conflict` while another one holds it. */
  acquire(key: string): Promise<Lease>
}

/**
 * A request that may come again, to any process: its key is part of its id, by which it is found again in
 * `webhooks.erasures`, for as long as that is kept. One that was interrupted is finished; one that did not get as far
 * as erasing all of its users is made again. Throws RequestKeyReused, and `conflict` while the same key is being worked on.
 */
export async function requestDeletionOnce(
  ports: OncePorts,
  given: Parameters<Deletions['request']>[0],
  key: RequestKey,
  options: Parameters<Deletions['request']>[1] = {},
): Promise<{ report: DeletionReport; repeated: boolean }> {
  const [mark, asked] = [markOf(key.key, 16), markOf(key.request, 8)]
  const lease = await ports.acquire(mark)
  try {
    const before = (await recordedDeletions(ports, null, options.signal)).filter(
      ({ requestId }) => requestId.split('-')[1] === mark,
    )
    if (before.some(({ requestId }) => requestId.split('-')[2] !== asked)) throw new RequestKeyReused()
    lease.check()
    const whole = before.findLast((each) => deletionState(each) !== 'cut_off')
    if (!whole) {
      const newRequestId = (at: number) => requestIdOf(at, `${mark}-${asked}`)
      return { report: await requestDeletion({ ...ports, newRequestId }, given, options), repeated: false }
    }
    if (deletionState(whole) === 'interrupted') await resumeDeletions(ports, whole.requestId, options)
    // As it was the first time.
    const sources = [...whole.sources].map(([sourceId, source]) => ({ sourceId, ...source }))
    return { report: wholeReport(whole.requestId, sources), repeated: true }
  } finally {
    await lease.release()
  }
}

/** Of a digest, in letters that an id may have. */
const markOf = (digest: string, length: number): string =>
  Buffer.from(digest, 'base64url').toString('hex').slice(0, length)
