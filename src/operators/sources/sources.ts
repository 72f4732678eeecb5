import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { allSources, builtInSource } from '../../core/call/built-in-source.ts'
import { rateOf } from '../../core/pacing/token-bucket.ts'
import type { SettingsState, Source } from '../../core/settings/settings.ts'
import { sourceOptionsShape } from '../../core/settings/source-options.ts'
import { sourceFiguresOf } from '../../core/statistics/views.ts'
import {
  type SettingKind,
  type ShownFacts,
  idText,
  noFacts,
  settingOperations,
} from '../settings/setting-operations.ts'
import { collectedShape } from '../statistics/collected-shape.ts'

/** A source as it is shown. */
const sourceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    writeKey: z
      .string()
      .nullable()
      .describe(
        'What senders show to the collector. No secret: browsers publish it. Null for the built-in source.',
      ),
    ...sourceOptionsShape,
    enabled: z.boolean(),
    builtIn: z.boolean().describe('The source of operational events, which cannot be changed.'),
    destinationIds: z.array(z.string()).describe('Where its calls go: the first 100.'),
    destinationCount: z.number().int().describe('All of them.'),
    lastDay: z
      .object(collectedShape)
      .optional()
      .describe('With `lastDay`: what collectors took of it within 24 hours.'),
  })
  .meta({ id: 'Source' })

/** One source can have 100,000 destinations, and a list has 200 sources. */
const maxNamed = 100

export type SourceView = z.output<typeof sourceSchema>

/** For a source that is made without one. */
export const newWriteKey = (): string => randomBytes(16).toString('hex')

type Destinations = SettingsState['destinations']

/** For each state of the settings once: a list of all sources would look at all destinations for each. */
const links = new WeakMap<Destinations, ReadonlyMap<string, readonly string[]>>()

/** By source, the ids of its destinations. */
function linksOf(destinations: Destinations): ReadonlyMap<string, readonly string[]> {
  const known = links.get(destinations)
  if (known) return known
  const made = new Map<string, string[]>()
  for (const { id, sourceIds } of destinations.values())
    for (const sourceId of new Set(sourceIds)) {
      const ids = made.get(sourceId)
      if (ids) ids.push(id)
      else made.set(sourceId, [id])
    }
  links.set(destinations, made)
  return made
}

function sourceView(
  source: Source,
  state: Pick<SettingsState, 'destinations'>,
  { lastDay }: ShownFacts = noFacts,
): SourceView {
  const linked = linksOf(state.destinations).get(source.id) ?? []
  const builtIn = source === builtInSource
  return {
    ...source,
    writeKey: builtIn ? null : source.writeKey,
    builtIn,
    destinationIds: linked.slice(0, maxNamed),
    destinationCount: linked.length,
    ...(lastDay && { lastDay: sourceFiguresOf(lastDay.get(source.id) ?? {}) }),
  }
}

export const sourceKind = {
  one: 'source',
  schema: sourceSchema,
  all: allSources,
  view: sourceView,
} as const satisfies SettingKind<Source, SourceView>

const optionsGiven = z.object(sourceOptionsShape).partial()

export const sourceCreate = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people.'),
    writeKey: z
      .string()
      .optional()
      .describe('Visible ASCII without a colon. A random one is made unless given.'),
    ...optionsGiven.shape,
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'SourceCreate' })

const updateBody = z
  .strictObject({
    name: z.string().optional().describe('For people.'),
    writeKey: z.string().optional().describe('Visible ASCII without a colon.'),
    ...optionsGiven.shape,
  })
  .meta({ id: 'SourceUpdate' })

export const sourceOperations = settingOperations({
  ...sourceKind,
  name: 'Source',
  isVersioned: true,
  facts: 'lastDay',
  flags: { enabled: '!disabled' },
  createBody: sourceCreate,
  updateBody,
  texts: {
    show: { summary: 'One source' },
    update: {
      summary: 'Change its name, write key or options',
      description: 'Changes what is given, and nothing else. A write key that is replaced stops working.',
    },
    enable: { summary: 'Take its calls again' },
    disable: { summary: 'Refuse and skip its calls' },
  },
  create: (body) => ({
    command: {
      type: 'create_source',
      ...body,
      writeKey: body.writeKey ?? newWriteKey(),
      maxRate: body.maxRate && rateOf(body.maxRate),
    },
    asked: body,
  }),
  update: (id, body) => ({
    command: { type: 'update_source', id, ...body, maxRate: body.maxRate && rateOf(body.maxRate) },
  }),
})
