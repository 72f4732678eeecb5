import type { RequestKey } from '../../core/settings/command-id.ts'
import { deletionState } from '../../core/erasure/deletion-book.ts'
import type { Lease } from '../lease.ts'
import { RequestKeyReused } from '../settings-writer.ts'
import { recordedDeletions, requestIdOf } from './history.ts'
import type { DeletionPorts } from './deletion-records.ts'
import type { DeletionReport, Deletions } from './deletions.ts'
import { requestDeletion, resumeDeletions, wholeReport } from './request.ts'

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
