// Operational events as mails.
import { hash } from 'node:crypto'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { mailAlertsIn } from '../../core/operational/mail-alerts.ts'
import type { SettingsState } from '../../core/settings/settings.ts'

export interface Mail {
  subject: string
  text: string
  /** The same mail again has the same. */
  id: string
  /** Mails of one thread have the same. */
  thread: string | null
}

/** How an attempt to send a mail ended. `refused`: the server will never take it. `failed`: it may take it later. */
export interface MailAnswer {
  outcome: 'taken' | 'refused' | 'failed'
  /** What the server said, or why it said nothing; one line, without the login. */
  detail: string
  /** Addresses that the server does not take it for, where it takes it for others. */
  refusedFor?: readonly string[]
}

/** One attempt at a time, which ends by itself. Never rejects. */
export interface Mailer {
  /** For people: host and port. */
  readonly server: string
  readonly from: string
  /** Of MAIL_TO; none where it is not set. */
  readonly to: readonly string[]
  send(mail: Mail, to: readonly string[], signal?: AbortSignal): Promise<MailAnswer>
}

/** Who is mailed now: those of the settings, and of MAIL_TO, whose id is null. */
export interface MailedAlert {
  id: string | null
  to: readonly string[]
  /** Null for all. */
  events: readonly string[] | null
}

export function mailedAlerts(
  { to }: Pick<Mailer, 'to'>,
  state: Pick<SettingsState, 'mailAlerts'>,
): MailedAlert[] {
  const fromEnvironment = to.length === 0 ? [] : [{ id: null, to, events: null }]
  return [...fromEnvironment, ...mailAlertsIn(state).filter(({ enabled }) => enabled)]
}

export const wantsMail = ({ events }: MailedAlert, { event }: Pick<AnalyticsCall, 'event'>): boolean =>
  events === null || (event !== null && events.includes(event))

const maxSubjectLength = 150

/** @param lost earlier mails that nobody got */
export function mailOf({ messageId, event, timestamp, properties }: AnalyticsCall, lost = 0): Mail {
  const { text, link, ...rest } = JSON.parse(properties ?? '{}') as Record<string, unknown>
  const said = String(text)
  const facts = Object.entries(rest)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const lines = [
    said,
    ...(typeof link === 'string' ? ['', link] : []),
    ...(lost > 0 ? ['', `${lost} earlier mails could not be sent: the console and its log have more.`] : []),
    ...['', `${event} at ${new Date(timestamp).toISOString()}`, ...facts],
  ]
  return {
    subject: `[Postrider] ${said.length > maxSubjectLength ? `${said.slice(0, maxSubjectLength)}…` : said}`,
    text: `${lines.join('\n')}\n`,
    id: messageId,
    thread: `postrider-${hash('sha256', String(rest.cause), 'base64url')}`,
  }
}

export const testMail = (id: string): Mail => ({
  subject: '[Postrider] Test: operational events are sent here',
  text: 'A test that somebody asked for. Nothing has happened.\n',
  id,
  thread: null,
})
