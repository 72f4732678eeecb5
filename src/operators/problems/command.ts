// What `postrider problems` prints.
import type { z } from 'zod'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable, table } from '../../cli/terminal.ts'
import type { problemSchema, problemsSchema } from './operations.ts'

const listShape: CommandShape = {
  text({ headline, problems, omitted }: z.output<typeof problemsSchema>) {
    const rows = problems.map(({ id, since, title, text, seen }) => [
      id,
      since ?? '-',
      printable(`${title}. ${text}`.trim()),
      seen === null ? '-' : printable(seen.by),
    ])
    return [
      headline,
      ...(rows.length === 0 ? [] : [table(['id', 'since', 'what', 'seen by'], rows)]),
      ...(omitted === 0 ? [] : [`${omitted} more`]),
    ].join('\n\n')
  },
}

export const problemShapes: Readonly<Record<string, CommandShape>> = {
  listProblems: listShape,
  acknowledgeProblem: {
    text: ({ id, seen }: z.output<typeof problemSchema>) => `${id} was seen by ${seen!.by}`,
  },
}
