import { getCACertificates } from 'node:tls'
import { createTransport } from 'nodemailer'
import type { MailSettings } from '../config/mail.ts'
import { messageOf } from '../errors.ts'
import type { Mailer } from '../operators/alerts/mail.ts'

/** What a mail server has for each step, and for all of them, in ms. */
const stepMs = 10_000
const attemptMs = 30_000

/** Codes of nodemailer for what a server says of this mail or its people, and not of the login or the line. */
const ofTheMail: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE'])

/** A connection for each attempt: there are few, and none is held open for the next. */
export function openMailer(
  { server, needsTls, ca, from, to }: MailSettings,
  { totalMs = attemptMs }: { totalMs?: number } = {},
): Mailer {
  const { host, port, isTls, login } = server
  const transport = createTransport({
    host,
    port,
    secure: isTls,
    requireTLS: needsTls,
    ignoreTLS: !needsTls && !isTls,
    ...(login && { auth: { user: login.user, pass: login.password } }),
    ...(ca !== null && { tls: { ca: [...getCACertificates('default'), ca] } }),
    connectionTimeout: stepMs,
    greetingTimeout: stepMs,
    socketTimeout: stepMs,
    dnsTimeout: stepMs,
    // Of what is in a mail nothing is read from disk or from elsewhere.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const shown = (text: string) =>
    oneLine(login === null ? text : text.replaceAll(login.password, '[not shown]'))
  const domain = from.slice(from.indexOf('@') + 1)
  return {
    server: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    from,
    to,
    async send({ subject, text, id, thread }, recipients, signal) {
      const deadline = AbortSignal.timeout(totalMs)
      try {
        const { response, rejected } = await transport.sendMail({
          from,
          // Not to be taken apart as a header is.
          to: recipients.map((address) => ({ name: '', address })),
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          ...(thread !== null && { references: [`<${thread}@${domain}>`] }),
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        })
        return { outcome: 'taken', detail: shown(response), refusedFor: rejected }
      } catch (error) {
        if (deadline.aborted) return { outcome: 'failed', detail: `no answer within ${totalMs / 1_000} s` }
        const { code, responseCode = 0 } = error as { code?: unknown; responseCode?: number }
        const isRefused = ofTheMail.has(code) && responseCode >= 500
        return { outcome: isRefused ? 'refused' : 'failed', detail: shown(messageOf(error)) }
      }
    },
  }
}

const maxDetailLength = 300
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, maxDetailLength)
