// What sources, destinations, plans, audiences and computed traits have in common in the API.
import { z } from 'zod'
import type { SettingsCommand } from '../../core/settings/commands.ts'
import { evolve } from '../../core/settings/events.ts'
import { initialSettings, type SettingsState } from '../../core/settings/settings.ts'
import { spanMs, type RollupCounts } from '../../core/statistics/rollup.ts'
import { PostriderError } from '../../errors.ts'
import { operation, type ApiAnswer, type Operation } from '../operation.ts'
import { healthsOf, type DestinationHealth } from '../statistics/overview.ts'
import { lastMinutes, sumsBetween } from '../statistics/series.ts'
import { cutOf, pageOf, pageQuery, checkTag, requestKey, tagOf } from '../schemas.ts'
import type { ConsoleServices } from '../services.ts'

export const idText = '1-64 of a-z, 0-9, "_" and "-"; never changed or reused'
export const idParams = z.object({ id: z.string().describe('Its id.') })

export const pathOf = (name: string) => `/${name.toLowerCase()}s` as const

interface Change {
  command: SettingsCommand
  /** Looks at the state before each decision; what it throws refuses the change. */
  check?(state: SettingsState): void
}

/** One kind of setting: `T` is one of it, `C` what it is created from. */
export interface ListedKind<
  T extends { id: string; name: string },
  C extends { id: string },
> extends SettingKind<T, unknown> {
  /** For operation ids, and its route: `Source`. */
  name: string
  /** Of its commands, as an operation has them. */
  flags?: Operation['flags']
  /** Whether it can be changed, and by If-Match. */
  isVersioned: boolean
  /** What can be asked of it beside the settings: how it is, or what collectors took of it. */
  facts?: 'health' | 'lastDay'
  createBody: z.ZodType<C>
  /** `asked` is what an Idempotency-Key stands for, with fingerprints in place of secrets. */
  create(body: C, services: ConsoleServices): Change & { asked: unknown }
}

/** As above, for a kind that can be changed, enabled and disabled; `U` is what a change may hold. */
export interface ChangeableKind<
  T extends { id: string; name: string },
  C extends { id: string },
  U,
> extends ListedKind<T, C> {
  one: 'source' | 'destination'
  updateBody: z.ZodType<U>
  texts: Record<'show' | 'update' | 'enable' | 'disable', { summary: string; description?: string }>
  update(id: string, body: U, services: ConsoleServices): Change
}

export function listAndCreate<T extends { id: string; name: string }, C extends { id: string }>(
  kind: ListedKind<T, C>,
): [list: Operation, create: Operation] {
  const { name, one, schema, isVersioned, createBody } = kind
  const path = pathOf(name)
  return [
    operation({
      id: `list${name}s`,
      route: `GET ${path}`,
      command: `${path.slice(1)} list`,
      role: 'reader',
      forLimited: 'part',
      summary: `All ${one}s, in the order of their creation`,
      query: pageQuery.extend({ ...textQuery, ...factsQuery(kind) }),
      success: { status: 200, description: 'A page of them.', schema: pageOf(schema) },
      async handle({ query }, services) {
        const { state } = services.settings
        const all = [...kind.all(state).values()]
        const text = query.q?.toLowerCase() ?? ''
        const isShown = (item: T) =>
          (kind.isListed?.(item) ?? true) && `${item.id}\n${item.name}`.toLowerCase().includes(text)
        const { items, next } = cutOf(all, query, isShown)
        const facts = await shownFacts(items, services, query)
        return { status: 200, body: { data: items.map((item) => kind.view(item, state, facts)), next } }
      },
    }),
    operation({
      id: `create${name}`,
      route: `POST ${path}`,
      command: `${path.slice(1)} create`,
      flags: kind.flags ?? {},
      role: 'admin',
      summary: `Add ${one === 'audience' ? 'an' : 'a'} ${one}`,
      body: createBody,
      isIdempotent: true,
      success: {
        status: 201,
        description: `The ${one} as it was created.`,
        schema,
        hasTag: isVersioned,
      },
      async handle({ body, idempotencyKey }, services) {
        const { command, asked, check } = kind.create(body, services)
        const request = requestKey(`create${name}`, idempotencyKey, asked)
        const { event, repeated } = await services.settings.perform(command, { request, check })
        // As it was made: a repeated request gets what it got the first time.
        const made = kind.all(evolve(initialSettings, event!)).get(body.id)!
        return {
          status: 201,
          headers: {
            ETag: tagOf(made),
            Location: `/api/v1${path}/${made.id}`,
            ...(repeated && { 'Idempotent-Replayed': 'true' }),
          },
          body: kind.view(made, initialSettings),
        }
      },
    }),
  ]
}

const textQuery = {
  q: z.string().optional().describe('Only those whose id or name contains it, in either case.'),
}

const readFirst = 'Statistics are read for it: a command may read the ledger first.'
const factQueries = {
  health: {
    health: z.boolean().default(false).describe(`Add how each destination is. ${readFirst}`),
  },
  lastDay: {
    lastDay: z.boolean().default(false).describe(`Add what collectors took within 24 hours. ${readFirst}`),
  },
}

const factsQuery = ({ facts }: { facts?: keyof typeof factQueries }): object =>
  facts === undefined ? {} : factQueries[facts]

/** What views of these need to know: Kafka is asked only where a pause is shown, statistics read only for what is asked for. */
export async function shownFacts(
  shown: readonly { id: string }[],
  { heldKeptMs, statistics, settings, callsTopic, now }: ConsoleServices,
  query: object = {},
): Promise<ShownFacts> {
  const isPaused = shown.some((item) => 'pause' in item && item.pause !== null)
  const isAsked = (name: string) => (query as Record<string, unknown>)[name] === true
  const ids = shown.map(({ id }) => id)
  const destinations = ids.flatMap((id) => settings.state.destinations.get(id) ?? [])
  return {
    heldKeptMs: isPaused ? await heldKeptMs() : null,
    healths: isAsked('health')
      ? healthsOf({ store: await statistics(), callsTopic, now: now() }, destinations)
      : null,
    lastDay: isAsked('lastDay')
      ? sumsBetween(await statistics(), 'source', lastMinutes(24 * spanMs.hour, now()), ids)
      : null,
  }
}

/** To list, create, show, change, enable and disable it. */
export function settingOperations<T extends { id: string; name: string }, C extends { id: string }, U>(
  kind: ChangeableKind<T, C, U>,
): Operation[] {
  const { name, one, schema, updateBody, texts } = kind
  const words = pathOf(name).slice(1)
  const path = `${pathOf(name)}/{id}` as const
  const success = { status: 200, description: `The ${one}.`, schema, hasTag: true }
  const answer = async (id: string, services: ConsoleServices, query = {}): Promise<ApiAnswer> => {
    const { state } = services.settings
    const found = settingIn(kind, state, id)
    const facts = await shownFacts([found], services, query)
    return { status: 200, headers: { ETag: tagOf(found) }, body: kind.view(found, state, facts) }
  }
  const change = async (id: string, ifMatch: string | null, change: Change, services: ConsoleServices) => {
    const check = (state: SettingsState) => {
      checkTag(ifMatch, kind.all(state).get(id))
      change.check?.(state)
    }
    await services.settings.perform(change.command, { check })
    return answer(id, services)
  }
  return [
    ...listAndCreate(kind),
    operation({
      id: `show${name}`,
      route: `GET ${path}`,
      command: `${words} show`,
      role: 'reader',
      forLimited: 'part',
      ...texts.show,
      params: idParams,
      ...(kind.facts && { query: z.strictObject({ ...factsQuery(kind) }) }),
      success,
      handle: ({ params: { id }, query }, services) => answer(id, services, query),
    }),
    operation({
      id: `update${name}`,
      route: `PATCH ${path}`,
      command: `${words} update`,
      flags: kind.flags ?? {},
      role: 'admin',
      ...texts.update,
      params: idParams,
      body: updateBody,
      hasPrecondition: true,
      success,
      handle: ({ params: { id }, body, ifMatch }, services) =>
        change(id, ifMatch, kind.update(id, body, services), services),
    }),
    ...(['enable', 'disable'] as const).map((turn) =>
      operation({
        id: `${turn}${name}`,
        route: `POST ${path}/${turn}`,
        command: `${words} ${turn}`,
        role: 'admin',
        ...texts[turn],
        params: idParams,
        hasPrecondition: true,
        success,
        handle: ({ params: { id }, ifMatch }, services) =>
          change(id, ifMatch, { command: { type: `${turn}_${one}`, id } }, services),
      }),
    ),
  ]
}

/** What views need to know beside the settings. */
export interface ShownFacts {
  /** For how long what a pause holds is kept, in ms; null without a limit, or where it is not known. */
  heldKeptMs: number | null
  /** By id; null where they were not asked for. */
  healths: ReadonlyMap<string, DestinationHealth> | null
  /** Counts of sources by id, of the last 24 hours; null where they were not asked for. */
  lastDay: ReadonlyMap<string, RollupCounts> | null
}

export const noFacts: ShownFacts = { heldKeptMs: null, healths: null, lastDay: null }

/** One kind of setting, for commands and admin API alike: `T` is one of it, `V` how it is shown. */
export interface SettingKind<T extends { id: string }, V> {
  /** For people: `source`. */
  one: string
  /** Of what is shown. */
  schema: z.ZodType<V>
  /** In the order of their creation. */
  all(state: SettingsState): ReadonlyMap<string, T>
  /** Whether it is there for people: what was removed is not. Unless given all are. */
  isListed?(item: T): boolean
  view(item: T, state: SettingsState, facts?: ShownFacts): V
}

/** Throws `not_found`. */
export function settingIn<T extends { id: string }>(
  { one, all, isListed }: Pick<SettingKind<T, unknown>, 'one' | 'all' | 'isListed'>,
  state: SettingsState,
  id: string,
): T {
  const found = all(state).get(id)
  if (found && (isListed?.(found) ?? true)) return found
  throw new PostriderError(
    'not_found',
    `${one} ${JSON.stringify(id)} does not exist; \`postrider ${one}s list\` shows all`,
  )
}
