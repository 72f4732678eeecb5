import { createHash } from 'node:crypto'
import { affectedSources, deleteCall, erasuresOf, finishedNote } from '../../core/deletion.ts'
import type { DeletionRequest } from '../../core/deletion.ts'
import type { Erasure } from '../../core/erasures.ts'
import type { Fault } from '../../core/settings-decision.ts'
import { PostriderError } from '../../errors.ts'
import { DeletionRefused, userIdFaults } from '../user-ids.ts'
import { recordedDeletions } from './history.ts'
import type { DeletionOptions, DeletionPorts, DeletionReport, Deletions, ResumeReport } from './ports.ts'

/** Erasures that are written together: those of most requests at once, which Kafka takes whole or not at all. */
const erasuresAtOnce = 5_000
/** Calls between two looks at the signal. */
const callsAtOnce = 500

/** The same user and source always give the same, so a delete call that is written again is known as such. */
const hashOf = ({ sourceId, userId }: Erasure): string =>
  createHash('sha256').update(`${sourceId}\0${userId}`).digest('base64url').slice(0, 27)

/**
 * First every erasure, acknowledged by all replicas, then every delete call (contracts.md, Deletions). Whatever ends
 * it in between, the erasures say which calls are owed.
 */
export async function requestDeletion(
  ports: DeletionPorts,
  { userIds, sourceIds }: Parameters<Deletions['request']>[0],
  {
    place = (index) => `userIds[${index}]`,
    ...options
  }: NonNullable<Parameters<Deletions['request']>[1]> = {},
): Promise<DeletionReport> {
  const faults = userIdFaults(userIds, place)
  if (faults.length > 0) throw new DeletionRefused(faults)
  await ports.settings.catchUp()
  const { affected, unknown } = affectedSources(sourceIds ?? null, ports.settings.state)
  if (unknown.length > 0) throw new DeletionRefused(unknown.map(unknownSource))
  if (affected.length === 0)
    throw new PostriderError(
      'not_found',
      'there is no source: nobody can have sent calls; nothing was changed',
    )
  const at = ports.now()
  const request: DeletionRequest = { requestId: ports.newRequestId(at), userIds, at }
  options.onStart?.(request.requestId)
  const erasures = [...erasuresOf(request, affected)]
  for (let done = 0; done < erasures.length; done += erasuresAtOnce) {
    goOn(request.requestId, options)
    options.onProgress?.('erasing', done, erasures.length)
    await ports.erasures.write(erasures.slice(done, done + erasuresAtOnce))
  }
  const owed = erasures.filter(({ destinationIds }) => destinationIds.length > 0)
  let told = 0
  for (const erasure of owed) {
    if (told % callsAtOnce === 0) goOn(request.requestId, options)
    await ports.calls.write(callOf(erasure))
    options.onProgress?.('telling', ++told, owed.length)
  }
  await ports.calls.flush()
  await ports.erasures.write([finishedNote(request, erasures.length)])
  return {
    requestId: request.requestId,
    users: userIds.length,
    sources: affected.map(({ sourceId, destinationIds }) => ({ sourceId, tells: destinationIds.length > 0 })),
    told,
  }
}

/** Writes the delete calls of requests that were interrupted: all of each, for a repeated one is known by its id. */
export async function resumeDeletions(
  ports: DeletionPorts,
  requestId: string | null,
  options: DeletionOptions = {},
): Promise<ResumeReport[]> {
  const { signal } = options
  const book = await recordedDeletions(ports, requestId, signal)
  const open = book.filter(({ finished }) => !finished)
  if (open.length === 0) return []
  const reports = new Map(
    open.map((each) => [
      each.requestId,
      { requestId: each.requestId, told: 0, missing: each.total - each.written },
    ]),
  )
  const owed = open.reduce((sum, { sources }) => sum + owedTo(sources), 0)
  let told = 0
  const seen = new Set<string>()
  const since = Math.min(...open.map(({ appendedAt }) => appendedAt))
  for await (const { erasure } of ports.erasures.read({ since, signal })) {
    const report = reports.get(erasure.requestId)
    if (!report || erasure.finished || erasure.destinationIds.length === 0) continue
    const call = callOf(erasure)
    if (seen.has(call.messageId)) continue
    seen.add(call.messageId)
    if (told % callsAtOnce === 0) goOn(erasure.requestId, options)
    await ports.calls.write(call)
    report.told++
    options.onProgress?.('telling', ++told, owed)
  }
  await ports.calls.flush()
  await ports.erasures.write(open.map((each) => finishedNote(each, each.total)))
  return [...reports.values()]
}

const owedTo = (sources: ReadonlyMap<string, { users: number; destinationIds: readonly string[] }>): number =>
  [...sources.values()].reduce((sum, { users, destinationIds }) => sum + (destinationIds.length && users), 0)

const callOf = (erasure: Erasure) => deleteCall(erasure, hashOf(erasure))

const unknownSource = (sourceId: string): Fault => ({
  code: 'not_found',
  field: 'sourceIds',
  message: `source ${JSON.stringify(sourceId)} does not exist`,
})

function goOn(requestId: string, { signal }: DeletionOptions): void {
  if (!signal?.aborted) return
  throw new PostriderError(
    'conflict',
    `deletion ${requestId} was stopped before its end: \`postrider deletions resume ${requestId}\` goes on`,
  )
}
