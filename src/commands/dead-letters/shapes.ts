// What the commands of dead letters have beside their operations.
import { z } from 'zod'
import type {
  deadLetterGroupsSchema,
  deadLetterSummarySchema,
} from '../../console/api/resources/dead-letters/dead-letters.ts'
import { usageError } from '../flags.ts'
import { table } from '../output.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { choiceShape, periodShape } from '../../console/api/resources/dead-letters/dead-letter-filter.ts'
import { fieldsOf } from '../../console/api/fields.ts'
import { addJobOptions, jobText, performReplay, rateIn } from '../../operators/replay/command.ts'
import { pageOf } from './describe.ts'

type Summary = z.output<typeof deadLetterSummarySchema>
type Groups = z.output<typeof deadLetterGroupsSchema>

/** Without what is smaller than a second. */
const secondOf = (iso: string): string => iso.replace(/\.\d{3}Z$/, 'Z')

export const deadLetterShapes: Readonly<Record<string, CommandShape>> = {
  listDeadLetters: {
    none: 'no dead letters',
    isNewestFirst: true,
    row: {
      headings: ['id', 'failed', 'reason', 'destination', 'attempts', 'last attempt'],
      of: ({ id, failedAt, reason, destinationId, attempts, status }: Summary) => [
        id,
        secondOf(failedAt),
        reason ?? 'unreadable',
        destinationId ?? '-',
        attempts ?? '-',
        status ?? '-',
      ],
    },
  },
  groupDeadLetters: {
    text: ({ groups, others }: Groups) =>
      groups.length === 0
        ? 'no dead letters'
        : table(
            ['count', 'reason', 'last attempt', 'destination', 'first', 'last'],
            groups.map(({ count, reason, status, destinationId, firstAt, lastAt }) => [
              count,
              reason ?? 'unreadable',
              String(status ?? '-'),
              destinationId ?? '-',
              secondOf(firstAt),
              secondOf(lastAt),
            ]),
          ) + (others > 0 ? `\n${others} more are of further kinds; a filter shows them` : ''),
  },
  showDeadLetter: { text: pageOf },
}

interface ReplayFlags {
  reason?: string[]
  destination?: string[]
  status?: string[]
  since?: string
  until?: string
  all?: true
  dryRun?: true
}

/** `postrider dead-letters replay`. */
export const deadLetterReplayShape: CommandShape = {
  summary: 'Send dead letters again',
  description:
    'Sends dead letters again, those that are there now, to all URLs that their destination has now, with a new retry ' +
    'window. Records that never became a delivery go back, as they were, to the topic they came from. Without ids ' +
    'and filters, --all is needed. A replay keeps the delivery’s id (Idempotency-Key) and its body with the ' +
    `messageId, so replaying twice sends twice what receivers can tell by these. ${jobText}`,
  fields: fieldsOf({ body: z.object({ ...choiceShape, ...periodShape }) }),
  addFlags(command) {
    command.argument('[id...]', 'of dead letters, or of deliveries').option('--all', 'all that there are')
    addJobOptions(command)
  },
  read(options, [given]) {
    const { all, dryRun, reason, destination, status, since, until } = options as ReplayFlags
    const ids = given as unknown as string[]
    const isFiltered = [reason, destination, status, since, until].some(Boolean)
    if (ids.length > 0 && isFiltered)
      throw usageError('give either ids or filters (--reason, --destination, --status, --since, --until)')
    const isChosen = ids.length > 0 || isFiltered
    if (all && isChosen) throw usageError('--all goes without ids and filters')
    if (!isChosen && !all && !dryRun)
      throw usageError(
        'give ids, filters (--reason, --destination, --status, --since, --until), or --all to send every dead letter again; --dry-run shows what would be sent',
      )
    const deadLetters = {
      ...(ids.length > 0 && { ids }),
      ...(reason && { reason }),
      ...(destination && { destination }),
      ...(status && { status }),
      ...(!isChosen && { all: true }),
    }
    return () => ({ body: { deadLetters, since, until, rate: rateIn(options) } })
  },
  run: performReplay,
}
