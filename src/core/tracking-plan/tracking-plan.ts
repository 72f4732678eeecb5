import { z } from 'zod'

/** The maps of a call that a plan says something about. */
export const checkedMaps = ['properties', 'traits', 'context'] as const
export type CheckedMap = (typeof checkedMaps)[number]

/** JSON Schema, draft-07. What it may hold is checked when a plan is set (adapters/json-schema/). */
export const jsonSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())])
export type JsonSchema = z.output<typeof jsonSchema>

const eventRules = z.object({
  properties: jsonSchema.optional(),
  traits: jsonSchema.optional(),
  context: jsonSchema.optional(),
})
export type EventRules = z.output<typeof eventRules>

export const unknownEventsChoices = ['allow', 'report', 'block'] as const
const unknownEvents = z.enum(unknownEventsChoices)

/** What is done about calls that violate their source's plan. */
export const planModes = ['report', 'block'] as const
export type PlanMode = (typeof planModes)[number]

/** What calls of a source should look like. */
export interface TrackingPlan {
  id: string
  name: string
  /** By the name of a track event, or by the type of calls. */
  events: Readonly<Record<string, EventRules>>
  /** What is done about track events that it does not name. */
  unknownEvents: (typeof unknownEventsChoices)[number]
  /** Removed ones are kept, without their events: ids are never reused. */
  removed: boolean
}

export type TrackingPlans = ReadonlyMap<string, TrackingPlan>

const events = z.record(z.string(), eventRules)

/** What can have happened to one. */
export const trackingPlanEvents = [
  z.object({
    type: z.literal('plan_created'),
    plan: z.object({ id: z.string(), name: z.string(), events, unknownEvents }),
  }),
  z.object({
    type: z.literal('plan_updated'),
    id: z.string(),
    name: z.string().optional(),
    /** All of them. */
    events: events.optional(),
    unknownEvents: unknownEvents.optional(),
  }),
  z.object({ type: z.literal('plan_removed'), id: z.string() }),
] as const
export type TrackingPlanEvent = z.output<(typeof trackingPlanEvents)[number]>

/** The plan of this id, unless it was removed. */
export function trackingPlanOf({ plans }: { plans: TrackingPlans }, id: string): TrackingPlan | undefined {
  const found = plans.get(id)
  return found?.removed ? undefined : found
}

/** The one that the event is about, after it. Throws for what no writer of ours can have written. */
export function trackingPlanAfter(all: TrackingPlans, event: TrackingPlanEvent): TrackingPlan {
  if (event.type === 'plan_created') return { ...event.plan, removed: false }
  const found = all.get(event.id)
  if (!found) throw new Error(`${event.type} names plan "${event.id}", which does not exist`)
  if (event.type === 'plan_removed') return { ...found, events: {}, removed: true }
  const { name, events, unknownEvents } = event
  return {
    ...found,
    name: name ?? found.name,
    events: events ?? found.events,
    unknownEvents: unknownEvents ?? found.unknownEvents,
  }
}
