import { z } from 'zod'
import type { SettingsState } from '../../core/settings/settings.ts'
import { operation, type ApiAnswer, type Operation } from '../operation.ts'
import { checkTag, tagOf } from '../schemas.ts'
import type { ConsoleServices } from '../services.ts'
import { idParams, listAndCreate, settingIn } from '../settings/setting-operations.ts'
import { planCreate, planKind, planSchema, planUpdate, requireSchemas } from './plans.ts'

const success = { status: 200, description: 'The plan.', schema: planSchema, hasTag: true }

function answer(id: string, { settings: { state } }: ConsoleServices): ApiAnswer {
  const found = settingIn(planKind, state, id)
  return { status: 200, headers: { ETag: tagOf(found) }, body: planKind.view(found, state) }
}

const checkOf = (id: string, ifMatch: string | null) => (state: SettingsState) =>
  checkTag(ifMatch, planKind.all(state).get(id))

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
]
