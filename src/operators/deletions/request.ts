import { createHash } from 'node:crypto'
import { DeletionBook, isUnfinished } from '../../core/erasure/deletion-book.ts'
import {
  affectedSources,
  deleteCall,
  erasuresOf,
  finishedNote,
  type AffectedSource,
  type DeletionRequest,
} from '../../core/erasure/deletion.ts'
import type { Erasure } from '../../core/erasure/erasures.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { DeletionOptions, DeletionReport, Deletions, ResumeReport } from './deletions.ts'
import { recordedDeletions, type DeleteCallSink, type DeletionPorts } from './history.ts'
import { checkSourceIds, checkUserIds, refusedSources, type UsersRefused } from './user-ids.ts'

/** Erasures per write. Most requests have fewer, so that Kafka takes all of theirs or none. */
const erasuresAtOnce = 5_000
/** Delete calls between two checks of the signal. */
const callsAtOnce = 500

type ErasedSource = AffectedSource & { users: number }

/** The same user and source always give the same, so a delete call that is written again is known as such. */
const hashOf = ({ sourceId, userId }: Erasure): string =>
  createHash('sha256').update(`${sourceId}\0${userId}`).digest('base64url').slice(0, 27)

/**
 * First every erasure, acknowledged by all replicas, then every delete call (docs/privacy.md). Whatever ends
 * it in between, the erasures say which calls are owed.
 */
export async function requestDeletion(
  ports: DeletionPorts,
  { userIds, sourceIds }: Parameters<Deletions['request']>[0],
  {
    place = (index) => `userIds.${index}`,
    ...options
  }: NonNullable<Parameters<Deletions['request']>[1]> = {},
): Promise<DeletionReport> {
  checkUserIds(userIds, place)
  await ports.settings.catchUp()
  const sources = sourcesOf({ userIds, sourceIds }, ports.settings.state)
  if (options.signal?.aborted)
    throw new PostriderError('conflict', 'the deletion was stopped before it began; nothing was changed')
  const at = ports.now()
  const request: DeletionRequest = {
    ...{ requestId: ports.newRequestId(at), userIds, at },
    actor: ports.actor(),
  }
  options.onStart?.(request.requestId)
  await erase(ports, request, sources, options)
  await withCalls(ports, request.requestId, (calls) => writeDeletes(calls, request, sources, options))
  const total = userIds.length * sources.length
  await noteFinished(ports, request.requestId, [finishedNote(request, total, total)])
  return wholeReport(request.requestId, sources)
}

/** What a request of these users would do now. Throws UsersRefused, as the request does. */
export function plannedDeletion(
  { userIds, sourceIds }: Parameters<Deletions['request']>[0],
  state: SettingsState,
): Omit<DeletionReport, 'requestId'> {
  const { requestId: _, ...report } = wholeReport('', sourcesOf({ userIds, sourceIds }, state))
  return report
}

function sourcesOf(
  { userIds, sourceIds }: Parameters<Deletions['request']>[0],
  state: SettingsState,
): ErasedSource[] {
  checkSourceIds(sourceIds, state)
  const { affected } = affectedSources(sourceIds ?? null, state)
  if (affected.length === 0) throw noSource()
  return affected.map((source) => ({ ...source, users: userIds.length }))
}

/** Of a request that was written whole. */
export const wholeReport = (requestId: string, sources: readonly ErasedSource[]): DeletionReport => ({
  requestId,
  users: Math.max(...sources.map(({ users }) => users)),
  sources: sources.map(({ sourceId, destinationIds }) => ({
    sourceId,
    notified: destinationIds.length > 0,
  })),
  deleteCalls: owedTo(sources),
})

async function erase(
  { erasures }: DeletionPorts,
  request: DeletionRequest,
  affected: readonly AffectedSource[],
  { onProgress }: DeletionOptions,
): Promise<void> {
  const total = request.userIds.length * affected.length
  let [batch, done]: [Erasure[], number] = [[], 0]
  const write = async () => {
    onProgress?.('erasing', done, total)
    await advised(
      erasures.write(batch),
      `deletion ${request.requestId} may have erased some of its users only: give all of them again`,
    )
    done += batch.length
    batch = []
  }
  for (const erasure of erasuresOf(request, affected)) {
    batch.push(erasure)
    if (batch.length === erasuresAtOnce) await write()
  }
  if (batch.length > 0) await write()
}

async function writeDeletes(
  calls: DeleteCallSink,
  request: DeletionRequest,
  sources: readonly ErasedSource[],
  { onProgress, signal }: DeletionOptions,
): Promise<void> {
  const owed = owedTo(sources)
  let written = 0
  for (const erasure of erasuresOf(request, sources)) {
    if (erasure.destinationIds.length === 0) continue
    if (written % callsAtOnce === 0) goOn(request.requestId, signal)
    await calls.write(callOf(erasure))
    onProgress?.('notifying', ++written, owed)
  }
}

/** Writes the delete calls of requests that were interrupted: all of each, for a repeated one is known by its id. */
export async function resumeDeletions(
  ports: DeletionPorts,
  requestId: string | null,
  options: DeletionOptions = {},
): Promise<ResumeReport[]> {
  const { signal, onProgress } = options
  const open = (await recordedDeletions(ports, requestId, signal)).filter(isUnfinished)
  if (open.length === 0) return []
  const deleteCalls = new Map(open.map((each) => [each.requestId, 0]))
  const owed = open.reduce((sum, { sources }) => sum + owedTo([...sources.values()]), 0)
  let done = 0
  // What it reads may be more by now than what it looked at.
  const book = new DeletionBook()
  const since = Math.min(...open.map(({ appendedAt }) => appendedAt))
  await withCalls(ports, requestId, async (calls) => {
    for await (const { erasure, appendedAt } of ports.erasures.read({ since, signal })) {
      const before = deleteCalls.get(erasure.requestId)
      if (before === undefined || !book.take(erasure, appendedAt)) continue
      if (erasure.destinationIds.length === 0) continue
      if (done % callsAtOnce === 0) goOn(erasure.requestId, signal)
      await calls.write(callOf(erasure))
      deleteCalls.set(erasure.requestId, before + 1)
      onProgress?.('notifying', ++done, Math.max(done, owed))
    }
  })
  const read = open.map((each) => book.get(each.requestId) ?? { ...each, written: 0 })
  await noteFinished(
    ports,
    requestId,
    read.map((each) => finishedNote(each, each.total, each.written)),
  )
  return read.map((each) => ({
    requestId: each.requestId,
    deleteCalls: deleteCalls.get(each.requestId)!,
    missing: each.total - each.written,
  }))
}

/** Every call is acknowledged once it resolves. */
async function withCalls<T>(
  ports: DeletionPorts,
  requestId: string | null,
  use: (calls: DeleteCallSink) => Promise<T>,
): Promise<T> {
  const calls = ports.openCalls()
  try {
    const used = use(calls).then(async (result) => {
      await calls.flush()
      return result
    })
    return await advised(used, goesOn(requestId))
  } finally {
    await calls.close()
  }
}

const noteFinished = (ports: DeletionPorts, requestId: string | null, notes: Erasure[]): Promise<void> =>
  advised(ports.erasures.write(notes), goesOn(requestId))

const goesOn = (requestId: string | null): string =>
  `\`postrider deletions resume${requestId === null ? '' : ` ${requestId}`}\` goes on where this stopped`

/** What can be tried again fails with the advice how to. */
async function advised<T>(work: Promise<T>, advice: string): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof PostriderError) || !error.canRetry) throw error
    throw new PostriderError(error.code, `${messageOf(error)}; ${advice}`, { cause: error })
  }
}

/** A delete call for each user of a source that has a destination. */
const owedTo = (sources: readonly Omit<ErasedSource, 'sourceId'>[]): number =>
  sources.reduce((sum, { users, destinationIds }) => sum + (destinationIds.length > 0 ? users : 0), 0)

const callOf = (erasure: Erasure) => deleteCall(erasure, hashOf(erasure))

export const noSource = (): UsersRefused =>
  refusedSources('not_found', 'there is no source: nobody can have sent calls')

function goOn(requestId: string, signal: AbortSignal | undefined): void {
  if (!signal?.aborted) return
  throw new PostriderError(
    'conflict',
    `deletion ${requestId} was stopped before its end: \`postrider deletions resume ${requestId}\` goes on`,
  )
}
