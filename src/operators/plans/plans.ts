import { z } from 'zod'
import { fault, maxFaults, type Fault } from '../../core/decision.ts'
import { maxEvents } from '../../core/tracking-plan/plan-rules.ts'
import type { PlanDraft } from '../../core/tracking-plan/draft.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import {
  checkedMaps,
  unknownEventsChoices,
  type JsonSchema,
  type TrackingPlan,
} from '../../core/tracking-plan/tracking-plan.ts'
import type { SettingKind } from '../settings/setting-operations.ts'
import { idText } from '../settings/setting-operations.ts'
import { SettingsRefused } from '../settings/writer.ts'

/** Why a schema cannot stand in a plan, with the place in it; null where it can. */
export type SchemaRefusal = (schema: JsonSchema) => string | null

/** A draft, and how many of the records of the time were looked at. */
export interface DraftedPlan extends ReturnType<PlanDraft['plan']> {
  looked: number
  total: number
  /** All that brokers got since was looked at, epoch ms. */
  lookedSince: number
}

/** Of calls of a source since then, epoch ms. Rejects with `kafka_unavailable`, `registry_unavailable`, `setup`. */
export type DraftPlan = (
  sourceId: string,
  since: number,
  options: { hasContext: boolean; signal: AbortSignal; progress(done: number, total: number): void },
) => Promise<DraftedPlan>

/** Of one object of a schema. */
const maxMembers = 1_000

const schemaGiven = z.union([
  z.boolean(),
  z
    .record(z.string(), z.unknown())
    .refine((schema) => Object.keys(schema).length <= maxMembers, `has more than ${maxMembers} keywords`)
    .meta({ maxProperties: maxMembers }),
]) satisfies z.ZodType<JsonSchema>

const schemaOf = (map: string) => schemaGiven.optional().describe(`JSON Schema, draft-07, of \`${map}\`.`)

const rulesSchema = z
  .strictObject({
    properties: schemaOf('properties'),
    traits: schemaOf('traits'),
    context: schemaOf('context'),
  })
  .meta({ id: 'PlannedEvent' })

const eventsSchema = z
  .record(z.string(), rulesSchema)
  .meta({ maxProperties: maxEvents })
  .describe(
    'By the name of a track event, or by the type of calls; `track` stands for all events that are not named.',
  )

const unknownEventsText =
  'What is done about track events that it does not name: nothing, count them, or keep them back where the source blocks.'
const unknownEvents = z.enum(unknownEventsChoices)

const planShape = {
  id: z.string().describe(idText),
  name: z.string().describe('For people.'),
  events: eventsSchema,
}

export const planSchema = z
  .object({
    ...planShape,
    unknownEvents: unknownEvents.describe(unknownEventsText),
    sourceIds: z.array(z.string()).describe('Whose calls are checked by it.'),
  })
  .meta({ id: 'TrackingPlan' })

export type PlanView = z.output<typeof planSchema>

/** As it is created, by the API and in settings files. */
export const planCreate = z
  .strictObject({ ...planShape, unknownEvents: unknownEvents.default('allow').describe(unknownEventsText) })
  .meta({ id: 'TrackingPlanCreate' })

export const planUpdate = z
  .strictObject({
    name: z.string().optional().describe('For people.'),
    events: eventsSchema.optional().describe('All of them.'),
    unknownEvents: unknownEvents.optional().describe(unknownEventsText),
  })
  .meta({ id: 'TrackingPlanUpdate' })

export const planKind = {
  one: 'plan',
  schema: planSchema,
  all: ({ plans }: Pick<SettingsState, 'plans'>) => plans,
  isListed: ({ removed }: TrackingPlan) => !removed,
  view: planView,
} as const satisfies SettingKind<TrackingPlan, PlanView>

function planView(
  { id, name, events, unknownEvents }: TrackingPlan,
  { sources }: Pick<SettingsState, 'sources'>,
): PlanView {
  const sourceIds = [...sources.values()].filter(({ plan }) => plan === id).map((source) => source.id)
  return { id, name, events, unknownEvents, sourceIds }
}

/** What is wrong with the schemas of a plan, each by its event and map; `field` is the place of `events`. */
export function schemaFaults(
  events: TrackingPlan['events'],
  refusal: SchemaRefusal,
  field = 'events',
): Fault[] {
  const faults: Fault[] = []
  for (const [event, rules] of Object.entries(events))
    for (const map of checkedMaps) {
      const schema = rules[map]
      const why = schema === undefined ? null : refusal(schema)
      if (why === null) continue
      faults.push(fault('usage', `${field}.${event}.${map}`, `${map} of ${JSON.stringify(event)}: ${why}`))
      if (faults.length > maxFaults) return faults
    }
  return faults
}

/** Throws SettingsRefused that names every schema that cannot be used. */
export function requireSchemas(events: TrackingPlan['events'] | undefined, refusal: SchemaRefusal): void {
  const faults = events === undefined ? [] : schemaFaults(events, refusal)
  if (faults.length > 0) throw new SettingsRefused(faults)
}
