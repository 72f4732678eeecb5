// What the commands of replays have beside their operations.
import type { z } from 'zod'
import type { dryRunSchema, jobSchema, statusSchema } from '../../console/api/resources/replay-jobs.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { statusText } from './describe.ts'

type Job = z.output<typeof jobSchema>
export type Status = z.output<typeof statusSchema>
export type DryRun = z.output<typeof dryRunSchema>

const done = { pause: 'paused', resume: 'running', cancel: 'cancelled' } as const

export const replayShapes: Readonly<Record<string, CommandShape>> = {
  listReplays: {
    none: 'no replays; `postrider replay --help` shows how to make one',
    row: {
      headings: ['ID', 'DESTINATION', 'STATE', 'ONLY', 'SINCE', 'UNTIL'],
      of: ({ id, destinationId, deadLetters, state, only, since, until }: Job) => [
        id,
        destinationId ?? '-',
        state,
        deadLetters === null ? only.join(',') : 'dead letters',
        since ?? '-',
        until ?? '-',
      ],
    },
  },
  showReplay: { text: statusText },
  ...Object.fromEntries(
    Object.entries(done).map(([turn, state]) => [
      `${turn}Replay`,
      { text: ({ id }: Status) => `replay ${id} is ${state}` },
    ]),
  ),
}
