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
  to: readonly string[]
}

/** A line for each variable that is missing. The parts of a deployment share their settings, but not the login. */
export function mailProblems(values: Partial<Values>, spell: (name: VariableName) => string): string[] {
  if (!values.MAIL_SMTP_URL) return []
  return (['MAIL_FROM', 'MAIL_TO'] as const)
    .filter((name) => values[name] === null)
    .map((name) => `${spell(name)} is not set; it takes ${variables[name].takes}`)
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
    to: MAIL_TO!,
  }
}
