// What `postrider alerts` prints.
import type { z } from 'zod'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable, table } from '../../cli/terminal.ts'
import type { alertAnswersSchema, alertsSchema } from './operations.ts'

export const alertShapes: Readonly<Record<string, CommandShape>> = {
  listAlerts: {
    text({ destinations, mail }: z.output<typeof alertsSchema>) {
      const rows = destinations.map(({ id, name, enabled, hosts, events }) => [
        ...[id, printable(name), enabled ? 'enabled' : 'disabled', hosts.join(', ')],
        events?.join(', ') ?? 'all',
      ])
      const mailed =
        mail === null
          ? 'mail: none; set MAIL_SMTP_URL, MAIL_FROM and MAIL_TO'
          : `mail: to ${mail.to.join(', ')} from ${mail.from} by ${mail.server}`
      return rows.length === 0
        ? `no destination gets operational events; \`postrider alerts create\` adds one\n\n${mailed}`
        : `${table(['ID', 'NAME', 'STATE', 'HOST', 'EVENTS'], rows)}\n\n${mailed}`
    },
  },
  createAlert: {
    text: ({ id }: { id: string }) =>
      `operational events are sent to ${id}; \`postrider alerts test --id ${id}\` tries it`,
  },
  testAlert: {
    text: ({ answers }: z.output<typeof alertAnswersSchema>) =>
      answers
        .map(
          ({ to, succeeded, status, answer }) =>
            `${to}: ${succeeded ? 'taken' : 'not taken'}${status === null ? '' : `, status ${status}`}: ${printable(answer)}`,
        )
        .join('\n'),
    hasFailed: ({ succeeded }: z.output<typeof alertAnswersSchema>) => !succeeded,
  },
}
