// Alerts by mail, as the API, a settings file and an export have them.
import { z } from 'zod'
import { mailAddress, maxMailRecipients, type MailAlert } from '../../core/operational/mail-alerts.ts'
import { operationalEventNames } from '../../core/operational/operational-event.ts'

export const mailRecipients = z
  .array(mailAddress)
  .max(maxMailRecipients)
  .describe('For mail: who gets them, each an address.')

export const mailedEvents = z
  .array(z.enum(operationalEventNames))
  .max(operationalEventNames.length)
  .nullable()
  .describe('For mail: only these events; null for all.')

const nameText = 'For mail: what people call it.'
export const defaultMailName = 'Mail'
export const mailAlertName = z.string().describe(nameText)

export const mailAlertInFile = z
  .strictObject({
    id: z.string(),
    name: mailAlertName.default(defaultMailName),
    to: mailRecipients,
    events: mailedEvents.default(null),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'MailAlertInFile' })

/** What has its default is left out. */
export const exportedMailAlert = ({ id, name, to, events, enabled }: MailAlert) => ({
  ...{ id, name, to: [...to] },
  ...(events !== null && { events: events as z.input<typeof mailAlertInFile>['events'] }),
  ...(!enabled && { enabled }),
})

export const mailAlertUpdate = z
  .strictObject({
    name: mailAlertName.optional(),
    to: mailRecipients.optional(),
    events: mailedEvents.optional(),
    enabled: z.boolean().optional().describe('Whether anything is sent to it.'),
  })
  .meta({ id: 'MailAlertUpdate' })
