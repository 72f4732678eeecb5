import { z } from 'zod'
import { callTypes, type CallType } from '../../core/call/analytics-call.ts'
import { isoOf } from '../../core/duration.ts'
import { spanMs } from '../../core/statistics/rollup.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { planModes } from '../../core/tracking-plan/tracking-plan.ts'
import { momentOf, momentText, periodBounds, periodShape } from '../dead-letters/filter.ts'
import { longReads, operation, type ApiAnswer, type Operation } from '../operation.ts'
import { checkTag, encodeCursor, pageOf, pageQuery, skipOf, tagOf } from '../schemas.ts'
import { sourceKind } from '../sources/sources.ts'
import type { ConsoleServices } from '../services.ts'
import { idParams, listAndCreate, settingIn } from '../settings/setting-operations.ts'
import type { ListedViolation } from '../statistics/series.ts'
import { planCreate, planKind, planSchema, planUpdate, requireSchemas } from './plans.ts'

const success = { status: 200, description: 'The plan.', schema: planSchema, hasTag: true }

function answer(id: string, { settings: { state } }: ConsoleServices): ApiAnswer {
  const found = settingIn(planKind, state, id)
  return { status: 200, headers: { ETag: tagOf(found) }, body: planKind.view(found, state) }
}

const checkOf = (id: string, ifMatch: string | null) => (state: SettingsState) =>
  checkTag(ifMatch, planKind.all(state).get(id))

const violationSchema = z
  .object({
    sourceId: z.string(),
    planId: z.string(),
    mode: z.enum(planModes).describe('What the source did about them.'),
    event: z.string().describe('Of a track event its name, else the type of the call.'),
    path: z
      .string()
      .describe(
        'Such as `properties.products.*.price`; `*` is what the plan does not name. Empty for the event itself.',
      ),
    rule: z.string().describe('The keyword of JSON Schema, or `unknown_event` and the like.'),
    count: z.number().int(),
    lastAt: z.iso.datetime(),
    messageIds: z.array(z.string()).describe('Of some of the calls: at most ten, the newest first.'),
  })
  .meta({ id: 'PlanViolation' })
export type ViolationView = z.output<typeof violationSchema>

/** @param named the plans whose names of events are shown; null: every name is */
function violationView(
  { lastAt, ...violation }: ListedViolation,
  named: SettingsState['plans'] | null,
): ViolationView {
  const { event, planId } = violation
  const isNamed =
    named === null ||
    callTypes.includes(event as CallType) ||
    Object.hasOwn(named.get(planId)?.events ?? {}, event)
  return { ...violation, event: isNamed ? event : '*', lastAt: isoOf(lastAt) }
}

const draftSchema = z
  .object({
    plan: planCreate,
    calls: z.number().int().describe('That it describes.'),
    omitted: z.number().int().describe('Calls of it that are too long, or of events that do not fit.'),
    looked: z.number().int().describe('Records that were looked at.'),
    total: z.number().int().describe('Records of that time.'),
    lookedSince: z.iso
      .datetime()
      .describe('Every record since was looked at; of those before, some or none.'),
  })
  .meta({ id: 'TrackingPlanDraft' })
export type DraftView = z.output<typeof draftSchema>

export const planOperations: Operation[] = [
  ...listAndCreate({
    ...planKind,
    name: 'Plan',
    isVersioned: true,
    createBody: planCreate,
    create(body, { schemaRefusal }) {
      requireSchemas(body.events, schemaRefusal)
      return { command: { type: 'create_plan', ...body }, asked: body }
    },
  }),
  operation({
    id: 'showPlan',
    route: 'GET /plans/{id}',
    command: 'plans show',
    role: 'reader',
    forLimited: 'part',
    summary: 'One plan',
    params: idParams,
    success,
    handle: async ({ params: { id } }, services) => answer(id, services),
  }),
  operation({
    id: 'updatePlan',
    route: 'PATCH /plans/{id}',
    command: 'plans update',
    role: 'admin',
    summary: 'Change its name, events or unknownEvents',
    description: 'Changes what is given, and nothing else. `events` are all that it has afterwards.',
    params: idParams,
    body: planUpdate,
    hasPrecondition: true,
    success,
    async handle({ params: { id }, body, ifMatch }, services) {
      const { settings, schemaRefusal } = services
      requireSchemas(body.events, schemaRefusal)
      await settings.perform({ type: 'update_plan', id, ...body }, { check: checkOf(id, ifMatch) })
      return answer(id, services)
    },
  }),
  operation({
    id: 'removePlan',
    route: 'DELETE /plans/{id}',
    command: 'plans remove',
    role: 'admin',
    summary: 'Remove it; its id cannot be used again',
    description: 'Refused while a source points to it.',
    params: idParams,
    hasPrecondition: true,
    success: {
      status: 200,
      description: 'It is gone.',
      schema: z.object({ id: z.string(), removed: z.literal(true) }).meta({ id: 'TrackingPlanRemoved' }),
    },
    async handle({ params: { id }, ifMatch }, { settings }) {
      await settings.perform({ type: 'remove_plan', id }, { check: checkOf(id, ifMatch) })
      return { status: 200, body: { id, removed: true } }
    },
  }),
  operation({
    id: 'listPlanViolations',
    route: 'GET /plan-violations',
    command: 'plans violations',
    role: 'reader',
    forLimited: 'part',
    summary: 'What calls violate their plans, the most frequent first',
    description:
      'By event, path and rule, of the last 9 days, a few seconds behind. A process that dies can leave a second of them ' +
      'uncounted, or have some counted twice. A reader is not told names of events that no plan has.',
    query: z.strictObject({
      plan: z.string().optional().describe('Only of this plan.'),
      source: z.string().optional().describe('Only of calls of this source.'),
      ...periodShape,
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(violationSchema) },
    async handle({ caller: { role }, query }, { statistics, settings, now }) {
      const { plan, source, limit, cursor } = query
      const { since, until } = periodBounds(query, now())
      const skip = skipOf(cursor)
      const filter = {
        sourceId: source ?? null,
        planId: plan ?? null,
        since: since === null ? null : Math.floor(since / spanMs.minute) * spanMs.minute,
        until,
      }
      const found = (await statistics()).violations(filter, limit + 1, skip)
      const { plans } = settings.state
      const shown = found.slice(0, limit).map((each) => violationView(each, role === 'reader' ? plans : null))
      const next = found.length > limit ? encodeCursor(String(skip + limit)) : null
      return { status: 200, body: { data: shown, next } }
    },
  }),
  operation({
    id: 'draftPlan',
    route: 'GET /plan-draft',
    command: 'plans draft',
    // It has names of events and properties, as they were sent.
    role: 'operator',
    forLimited: 'nothing',
    summary: 'A plan made from calls that came in',
    description:
      'Of each property the types that it had, required where it was always there. The calls that it was made from do not ' +
      'violate it. The newest 100,000 records of the time are looked at, of all sources: `lookedSince` says how far back that is. Nothing is created.',
    limit: longReads,
    query: z.strictObject({
      source: z.string().describe('Of whose calls.'),
      since: z.string().default('7d').describe(`What came since then. ${momentText}`),
      context: z.boolean().default(false).describe('Describe `context` too.'),
    }),
    success: { status: 200, description: 'The plan, as it can be created.', schema: draftSchema },
    progress: z.object({ done: z.number().int(), total: z.number().int() }).meta({ id: 'DraftProgress' }),
    async handle({ query, gone }, { settings, draftPlan, now }) {
      const source = settingIn(sourceKind, settings.state, query.source)
      const since = momentOf('since', query.since, now())!
      return {
        async run(progress) {
          const { calls, omitted, looked, total, lookedSince, ...drafted } = await draftPlan(
            source.id,
            since,
            {
              hasContext: query.context,
              signal: gone,
              progress: (done, total) => progress({ done, total }),
            },
          )
          const { id, name } = source
          const plan = { id, name, ...drafted }
          return { plan, calls, omitted, looked, total, lookedSince: isoOf(lookedSince) }
        },
      }
    },
  }),
]
