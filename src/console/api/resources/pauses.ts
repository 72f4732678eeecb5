import { z } from 'zod'
import { parseTimestamp } from '../../../core/call/timestamp.ts'
import { parseDuration } from '../../../core/duration.ts'
import type { SettingsCommand } from '../../../core/settings/commands.ts'
import { destinationKind, newPauseId } from '../../destinations.ts'
import { settingIn } from '../../setting-kind.ts'
import { RequestRefused } from '../errors.ts'
import { operation, type ApiAnswer, type Operation } from '../operation.ts'
import type { ConsoleServices } from '../services.ts'
import { idParams, shownFacts } from '../setting-operations.ts'
import { checkTag, tagOf } from '../tags.ts'

const pauseBody = z
  .strictObject({
    for: z
      .string()
      .max(20)
      .optional()
      .describe('How long, such as `30m`, `2h` or `1d`; without, until it is resumed.'),
    until: z
      .string()
      .max(40)
      .optional()
      .describe('When it ends by itself, as an ISO 8601 time; instead of `for`.'),
  })
  .meta({ id: 'DestinationPause' })

const success = { status: 200, description: 'The destination.', schema: destinationKind.schema, hasTag: true }

export const pauseOperations: Operation[] = [
  operation({
    id: 'pauseDestination',
    route: 'POST /destinations/{id}/pause',
    command: 'destinations pause',
    role: 'operator',
    summary: 'Hold its calls, for a while or until it is resumed',
    description:
      'Nothing is attempted meanwhile: calls and retries that come due are held, and are sent after the pause. One that ' +
      'is paused already stays so under the same pause, with this end.',
    params: idParams,
    body: pauseBody,
    hasPrecondition: true,
    success,
    handle({ params: { id }, body, ifMatch }, services) {
      const at = services.now()
      const command = {
        type: 'pause_destination',
        id,
        pauseId: newPauseId(),
        at,
        until: endOf(body, at),
      } as const
      return change(command, ifMatch, services)
    },
  }),
  operation({
    id: 'resumeDestination',
    route: 'POST /destinations/{id}/resume',
    command: 'destinations resume',
    role: 'operator',
    summary: 'End its pause',
    params: idParams,
    hasPrecondition: true,
    success,
    handle({ params: { id }, ifMatch }, services) {
      return change({ type: 'resume_destination', id, pauseId: null, at: services.now() }, ifMatch, services)
    },
  }),
]

async function change(
  command: Extract<SettingsCommand, { type: 'pause_destination' | 'resume_destination' }>,
  ifMatch: string | null,
  services: ConsoleServices,
): Promise<ApiAnswer> {
  const { id } = command
  const { settings } = services
  await settings.perform(command, { check: ({ destinations }) => checkTag(ifMatch, destinations.get(id)) })
  const { state } = settings
  const found = settingIn(destinationKind, state, id)
  return {
    status: 200,
    headers: { ETag: tagOf(found) },
    body: destinationKind.view(found, state, await shownFacts([found], services)),
  }
}

/** In epoch ms; null for a pause without an end. */
function endOf({ for: lasts, until }: z.output<typeof pauseBody>, at: number): number | null {
  const faults: { field: string; message: string }[] = []
  const forMs = lasts === undefined ? null : parseDuration(lasts)
  const untilAt = until === undefined ? null : parseTimestamp(until)
  if (lasts !== undefined && forMs === null)
    faults.push({ field: 'for', message: 'must be a duration such as 30m, 2h or 1d' })
  if (until !== undefined && untilAt === null)
    faults.push({ field: 'until', message: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z' })
  if (lasts !== undefined && until !== undefined)
    faults.push({ field: 'until', message: 'give `for` or `until`, not both' })
  if (faults.length > 0)
    throw new RequestRefused(
      'invalid_request',
      faults.map((each) => `${each.field}: ${each.message}`).join('; '),
      faults,
    )
  return forMs === null ? untilAt : at + forMs
}
