import type { Computation, ComputationKind } from '../audience/computations.ts'
import { accepted, refused, idFaults, nameFaults, fault, faultIf, type Fault } from '../decision.ts'
import type { ComputationCommand } from './commands.ts'
import type { Decision } from './events.ts'
import type { SettingsAggregate } from './settings.ts'

export const computationWords = { audience: 'audience', trait: 'computed trait' } as const

export function decideComputation(command: ComputationCommand, state: SettingsAggregate): Decision {
  if (command.type === 'create_computation') return decideCreate(command, state)
  const { kind, id } = command
  const found = state.computations.get(id)
  if (!found || found.kind !== kind) return refused('not_found', 'id', `${label(command)} does not exist`)
  switch (command.type) {
    case 'start_sync':
      return decideStart(command, found, state)
    case 'finish_sync': {
      const { syncId, at, entered, left } = command
      if (found.openSync?.syncId !== syncId)
        return refused('conflict', 'syncId', `sync ${syncId} of ${label(command)} is not open any more`)
      // The next one sends its calls again.
      const fault = sourceFault(found, state)
      if (fault !== null) return { accepted: false, faults: [fault] }
      return accepted({ type: 'sync_finished', kind, id, syncId, at, entered, left })
    }
    case 'delete_computation':
      return accepted(found.deleted ? null : { type: 'computation_deleted', kind, id })
  }
}

type Create = Extract<ComputationCommand, { type: 'create_computation' }>
type Start = Extract<ComputationCommand, { type: 'start_sync' }>

function decideCreate(command: Create, { computations, sources }: SettingsAggregate): Decision {
  const { kind, id, name, sourceId } = command
  const key = snakeCase(name)
  const taken = computations.get(id)
  const isSource = sources.has(sourceId)
  const faults = [
    ...idFaults(id),
    // Memberships of both kinds lie under their ids in one topic.
    ...(taken
      ? [fault('conflict', 'id', `${label(taken)} exists already or did once, and ids are never reused`)]
      : []),
    ...nameFaults(name),
    ...(key === '' && name.trim() !== ''
      ? [fault('usage', 'name', 'the name holds no letter or digit, so no property can be named after it')]
      : []),
    ...sameKey(key, [...computations.values()]),
    ...faultIf(!isSource, 'not_found', 'sourceId', `source ${JSON.stringify(sourceId)} does not exist`),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({ type: 'computation_created', kind, id, name, key, sourceId })
}

/** Users have one property of a name, whatever it comes from. */
function sameKey(key: string, all: readonly Computation[]): Fault[] {
  const other = key === '' ? undefined : all.find((each) => !each.deleted && each.key === key)
  if (!other) return []
  const message = `the name's property "${key}" is that of ${label(other)}, named ${JSON.stringify(other.name)}`
  return [fault('conflict', 'name', message)]
}

function decideStart(command: Start, found: Computation, state: SettingsAggregate): Decision {
  const { kind, id, syncId, mode, at } = command
  if (found.deleted) return refused('not_found', 'id', `${label(command)} was deleted`)
  if (found.openSync !== null)
    return refused(
      'conflict',
      'id',
      `sync ${found.openSync.syncId} of ${label(command)} is open: it has to be finished first`,
    )
  const fault = sourceFault(found, state)
  if (fault !== null) return { accepted: false, faults: [fault] }
  return accepted({ type: 'sync_started', kind, id, syncId, mode, at })
}

/** Set while a sync's calls would be skipped, and the members would count as notified. */
export function sourceFault(
  { sourceId }: Pick<Computation, 'sourceId'>,
  { sources }: Pick<SettingsAggregate, 'sources'>,
): Fault | null {
  if (sources.get(sourceId)?.enabled) return null
  const message = `source "${sourceId}" is disabled, nobody would get the changes: enable it first`
  return fault('conflict', 'sourceId', message)
}

const label = ({ kind, id }: { kind: ComputationKind; id: string }): string =>
  `${computationWords[kind]} ${JSON.stringify(id)}`

/** Invisible: joiners, soft hyphens, direction marks, variation selectors. Two names must not differ by these alone. */
const invisible = /[\p{Cf}\ufe00-\ufe0f]/gu
const apostrophes = /['\u2019\u02bc]/gu
const word = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu
/** `monthlyActive`, `Q4Buyers`: before a capital that follows a small letter, a letter without case, or a digit. */
const afterSmall = /(?<=[\p{Ll}\p{Lm}\p{Lo}\p{N}]\p{M}*)(?=[\p{Lu}\p{Lt}])/gu
/** `HTTPUsers`: before the last capital of a row, when a small letter follows it. */
const endOfCapitals = /(?<=[\p{Lu}\p{Lt}]\p{M}*)(?=[\p{Lu}\p{Lt}]\p{M}*\p{Ll})/gu

/**
 * The snake_case form of a name in any script: words of letters and digits, in lower case, joined by `_`. Scripts
 * without case or spaces stay as they are. Apostrophes are left out (`Women's` is `womens`); forms that only look
 * different (full width, ligatures, composed or not) come to one. A digit belongs to the word that it stands in:
 * `top10` stays one. Empty for a name without a letter or digit.
 */
export function snakeCase(name: string): string {
  const plain = name.normalize('NFKC').replace(invisible, '').replace(apostrophes, '')
  const words = plain.replace(afterSmall, '_').replace(endOfCapitals, '_').match(word) ?? []
  return words.join('_').toLowerCase().normalize('NFKC')
}
