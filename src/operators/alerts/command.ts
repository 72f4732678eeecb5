// What `postrider alerts` prints.
import type { z } from 'zod'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable, table } from '../../cli/terminal.ts'
import type { alertAnswersSchema, alertSchema, alertsSchema } from './operations.ts'

function serverText(mail: z.output<typeof alertsSchema>['mail']): string {
  if (mail === null) return 'mail: this process has no mail server; consoles need MAIL_SMTP_URL and MAIL_FROM'
  const also = mail.to.length === 0 ? '' : `, by MAIL_TO also to ${mail.to.join(', ')}`
  return `mail: from ${mail.from} by ${mail.server}${also}`
}

export const alertShapes: Readonly<Record<string, CommandShape>> = {
  listAlerts: {
    text({ destinations, mails, mail }: z.output<typeof alertsSchema>) {
      const rows = destinations.map(({ id, name, enabled, hosts, events }) => [
        ...[id, printable(name), enabled ? 'enabled' : 'disabled', hosts.join(', ')],
        events?.join(', ') ?? 'all',
      ])
      const mailRows = mails.map(({ id, name, enabled, to, events }) => [
        ...[id, printable(name), enabled ? 'enabled' : 'disabled', to!.join(', ')],
        events?.join(', ') ?? 'all',
      ])
      const isNobody = rows.length === 0 && mailRows.length === 0
      return [
        ...(isNobody ? ['no destination gets operational events; `postrider alerts create` adds one'] : []),
        ...(rows.length === 0 ? [] : [table(['ID', 'NAME', 'STATE', 'HOST', 'EVENTS'], rows)]),
        ...(mailRows.length === 0 ? [] : [table(['BY MAIL', 'NAME', 'STATE', 'TO', 'EVENTS'], mailRows)]),
        serverText(mail),
      ].join('\n\n')
    },
  },
  createAlert: {
    text: ({ id, to }: z.output<typeof alertSchema>) =>
      to === null
        ? `operational events are sent to ${id}; \`postrider alerts test --id ${id}\` tries it`
        : `consoles with MAIL_SMTP_URL mail operational events to ${to.join(', ')}; there \`postrider alerts test --kind mail --id ${id}\` tries it`,
  },
  removeMailAlert: { text: ({ id }: { id: string }) => `alert "${id}" by mail is removed` },
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
