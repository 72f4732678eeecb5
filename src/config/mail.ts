// What the variables about mail must be together.
import type { SmtpServer } from './variable.ts'
import { variables, type Values, type VariableName } from './variables.ts'

/** How operational events are sent by mail. */
export interface MailSettings {
  server: SmtpServer
  /** Nothing is sent unless TLS has begun. */
  needsTls: boolean
  /** Certificates in PEM form, trusted beside Node's own. */
  ca: string | null
  from: string
  /** Who gets them beside those of the settings. */
  to: readonly string[]
}

/** A line where the sender is missing. The parts of a deployment share their settings, but not the login. */
export function mailProblems(values: Partial<Values>, spell: (name: VariableName) => string): string[] {
  if (!values.MAIL_SMTP_URL) return []
  if (values.MAIL_FROM !== null) return []
  return [`${spell('MAIL_FROM')} is not set; it takes ${variables.MAIL_FROM.takes}`]
}

/** Null where this process has no mail server. */
export function mailOf(values: Values): MailSettings | null {
  const { MAIL_SMTP_URL: server, MAIL_FROM, MAIL_TO, MAIL_TLS, MAIL_CA_FILE } = values
  if (server === null) return null
  return {
    server,
    needsTls: MAIL_TLS === 'required',
    ca: MAIL_CA_FILE?.text ?? null,
    from: MAIL_FROM![0]!,
    to: MAIL_TO ?? [],
  }
}
