import { z } from 'zod'
import type { Role } from '../../core/access/roles.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import type { SettingsChange } from '../../core/settings/events.ts'
import type { MailAlert } from '../../core/operational/mail-alerts.ts'
import type { TouchedSetting, AcceptedRecord } from '../../core/settings/fold.ts'
import { loginSecrets } from '../../core/settings/login.ts'
import type { Destination, SealedSecret } from '../../core/settings/settings.ts'
import type { TrackingPlan } from '../../core/tracking-plan/tracking-plan.ts'
import { destinationFor } from '../destinations/destinations.ts'

const kinds = [
  'plan',
  'source',
  'destination',
  'audience',
  'trait',
  'token',
  'replay',
  'problem',
  'mail alert',
] as const

const fieldValue = z.unknown().describe('Secrets are shown by their fingerprints.')

/** One thing of the settings, and what of it changed. */
export const changedSettingSchema = z
  .object({
    kind: z.enum(kinds),
    id: z.string(),
    created: z.boolean(),
    changes: z.array(
      z.object({
        field: z.string(),
        from: fieldValue.describe('Null of what was created.'),
        to: fieldValue,
      }),
    ),
  })
  .meta({ id: 'ChangedSetting' })

export type ChangedSetting = z.output<typeof changedSettingSchema>

/** As a role may see it. Null when nothing that is a setting changed: that a list of members was synced is none. */
export function changedSetting({ id, before, after, of }: TouchedSetting, role: Role): ChangedSetting | null {
  const from: Fields = before === undefined ? {} : fieldsOf(of, before, 'admin')
  const to = fieldsOf(of, after, 'admin')
  const shownFrom = before === undefined ? {} : fieldsOf(of, before, role)
  const shownTo = fieldsOf(of, after, role)
  const changes = [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((field) => JSON.stringify(to[field]) !== JSON.stringify(from[field]))
    .map((field) => ({ field, from: shownFrom[field] ?? null, to: shownTo[field] ?? null }))
    .filter(({ from, to }) => from !== null || to !== null)
  if (before !== undefined && changes.length === 0) return null
  return { kind: kindOf(of, after), id, created: before === undefined, changes }
}

type Fields = Record<string, unknown>

/** Everything of it that is a setting, as it may be shown: whatever is added to its type comes along. */
function fieldsOf(of: SettingsChange['of'], value: SettingsChange['value'], role: Role): Fields {
  switch (of) {
    case 'sources':
      return without(value, 'id')
    case 'destinations':
      return destinationFields(destinationFor(role, value as Destination))
    case 'computations':
      return without(value, 'id', 'kind', 'key', 'openSync', 'lastSync')
    case 'mailAlerts':
      return mailAlertFields(value as MailAlert)
    case 'tokens':
      return without(value, 'id', 'hash', 'createdAt')
    case 'plans':
      return planFields(value as TrackingPlan)
    case 'acknowledgements':
      return without(value, 'id', 'size')
    case 'replays':
      return without(value, 'id', 'createdAt', 'changedAt', 'keptSince', 'totals', 'ends')
  }
}

/** Of one that is there it need not be said that it was not removed. */
const mailAlertFields = ({ removed, ...alert }: MailAlert): Fields => ({
  ...without(alert, 'id'),
  ...(removed && { removed }),
})

/** Each event is a field of its own: a plan may have hundreds of them. */
const planFields = ({ name, unknownEvents, removed, events }: TrackingPlan): Fields => ({
  ...{ name, unknownEvents },
  ...(removed && { removed }),
  ...Object.fromEntries(Object.entries(events).map(([event, rules]) => [`events.${event}`, rules])),
})

function destinationFields(destination: Destination): Fields {
  const { options, urls, sharedSecret, earlierSecret, login, templateSecrets } = destination
  return {
    ...without(destination, 'id', 'type', 'options', 'endedPauses', 'login', 'templateSecrets'),
    sharedSecret: fingerprintOf(sharedSecret),
    earlierSecret: fingerprintOf(earlierSecret),
    ...Object.fromEntries(loginSecrets(login).map(({ name, sealed }) => [name, fingerprintOf(sealed)])),
    ...(templateSecrets.length > 0 && {
      templateSecrets: Object.fromEntries(
        templateSecrets.map(({ name, value }) => [name, fingerprintOf(value)]),
      ),
    }),
    ...options,
    urls: urls.map(({ url, headers, goneAt }) => ({
      url,
      ...(headers.length > 0 && {
        headers: Object.fromEntries(headers.map((header) => [header.name, fingerprintOf(header.value)])),
      }),
      ...(goneAt !== null && { goneAt: new Date(goneAt).toISOString() }),
    })),
  }
}

const fingerprintOf = (sealed: SealedSecret | null): string | null =>
  sealed && `fingerprint ${sealed.fingerprint}`

function without(value: object, ...names: string[]): Fields {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))
}

const kindNames = {
  plans: 'plan',
  sources: 'source',
  destinations: 'destination',
  tokens: 'token',
  replays: 'replay',
  acknowledgements: 'problem',
  mailAlerts: 'mail alert',
} as const

const kindOf = (of: SettingsChange['of'], value: SettingsChange['value']): ChangedSetting['kind'] =>
  of === 'computations' ? (value as { kind: ComputationKind }).kind : kindNames[of]

export const historyEntrySchema = z
  .object({
    version: z.number().int().describe('Of the settings, after it.'),
    at: z.iso.datetime().describe('When the log took it, by Kafka’s clock.'),
    actor: z
      .string()
      .nullable()
      .describe(
        'A token’s name, `cli:<user>@<host>`, or `<part>:<host>`. Null for earlier versions’ changes.',
      ),
    type: z.string().describe('Of the event.'),
    changed: z.array(changedSettingSchema).describe('Several where a whole file was applied.'),
  })
  .meta({ id: 'SettingsHistoryEntry' })

export type HistoryEntry = z.output<typeof historyEntrySchema>

export interface HistoryQuery {
  source?: string | undefined
  destination?: string | undefined
  /** Epoch ms. */
  since: number | null
  /** Epoch ms; null: up to now. */
  until: number | null
  /** Only those before this version. */
  before: number | null
  limit: number
  /** Of the caller that it is shown to. */
  role: Role
}

/** Reads every change of the settings there was, the oldest first. */
export type ReadChanges = (each: (accepted: AcceptedRecord) => void, signal?: AbortSignal) => Promise<void>

/**
 * Changes of the settings, the newest first. The whole log is read for each page, and no more than a page is kept. `next`
 * is what `before` is for the page behind it.
 */
export async function settingsHistory(
  query: HistoryQuery,
  read: ReadChanges,
  signal?: AbortSignal,
): Promise<{ data: HistoryEntry[]; next: number | null }> {
  const { since, until, before, limit } = query
  const newest: HistoryEntry[] = []
  await read((accepted) => {
    const version = accepted.version + 1
    if (before !== null && version >= before) return
    if (since !== null && accepted.appendedAt < since) return
    if (until !== null && accepted.appendedAt >= until) return
    const entry = entryOf(accepted, query)
    if (entry === null) return
    newest.push(entry)
    if (newest.length > limit + 1) newest.shift()
  }, signal)
  newest.reverse()
  const data = newest.slice(0, limit)
  return { data, next: newest.length > limit ? data.at(-1)!.version : null }
}

function entryOf(
  { record, version, appendedAt, touched }: AcceptedRecord,
  { source, destination, role }: HistoryQuery,
): HistoryEntry | null {
  const isAny = source === undefined && destination === undefined
  const changed = touched
    .filter(
      ({ of, id }) =>
        isAny || (of === 'sources' && id === source) || (of === 'destinations' && id === destination),
    )
    .map((setting) => changedSetting(setting, role))
    .filter((found) => found !== null)
  if (changed.length === 0) return null
  return {
    version: version + 1,
    at: new Date(appendedAt).toISOString(),
    actor: record.actor || null,
    type: record.event.type,
    changed,
  }
}
