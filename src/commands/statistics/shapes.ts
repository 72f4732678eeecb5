// What the commands of statistics have beside their operations.
import type { attemptView } from '../../console/statistics/attempts.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { attemptRow, destinationPage, sourcePage, totalPage } from './describe.ts'
import { overviewPage, systemPage } from './overview-page.ts'

export const statisticsShapes: Readonly<Record<string, CommandShape>> = {
  overview: { text: overviewPage },
  showSystem: { text: systemPage },
  totalStats: { text: totalPage },
  destinationStats: { text: destinationPage },
  sourceStats: { text: sourcePage },
  listAttempts: {
    none: 'no attempt is listed that is asked for',
    isNewestFirst: true,
    row: {
      headings: ['at', 'destination', 'URL', 'outcome', 'status', 'took', 'attempt', 'message', 'detail'],
      of: (attempt: ReturnType<typeof attemptView>) => attemptRow(attempt),
    },
  },
}
