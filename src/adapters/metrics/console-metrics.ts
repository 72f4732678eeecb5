import { escapeValue, heading, inPieces } from './exposition.ts'
import { mailOutcomes, type MailOutcome } from '../../operators/alerts/mail-queue.ts'
import type { Exposed } from './exposition.ts'

const name = 'postrider_console_requests_total'
const mailed = 'postrider_mails_total'
const passed = 'postrider_audit_passed'
const audited = 'postrider_audit_timestamp_seconds'
const interval = 'postrider_audit_interval_seconds'

/** How an audit ended; `at` is epoch ms. */
interface ShownAudit {
  at: number
  ok: boolean
}

/** Counts requests to the admin API, and shows the last audit. Operations are a closed set, and what is none of them is `none`. */
export class ConsoleCounts implements Exposed {
  readonly #counts = new Map<string, number>()
  readonly #mails = new Map<MailOutcome, number>(mailOutcomes.map((outcome) => [outcome, 0]))

  /** How often it audits by itself, in ms; null: never. */
  auditIntervalMs: number | null = null
  /** The last audit that this console made, or null; read at each scrape. */
  audit: () => ShownAudit | null = () => null

  request(operationId: string | null, status: number): void {
    const labels = `operation="${escapeValue(operationId ?? 'none')}",code_class="${Math.floor(status / 100)}xx"`
    this.#counts.set(labels, (this.#counts.get(labels) ?? 0) + 1)
  }

  mail(outcome: MailOutcome): void {
    this.#mails.set(outcome, this.#mails.get(outcome)! + 1)
  }

  *expose(): Generator<string> {
    const head = heading(name, 'counter', 'Requests to the admin API, by what they were answered.')
    yield* inPieces(head, this.#counts, ([labels, count]) => `${name}{${labels}} ${count}\n`)
    const mails = heading(
      mailed,
      'counter',
      'Operational events that were to be mailed, by what became of them.',
    )
    yield* inPieces(mails, this.#mails, ([outcome, count]) => `${mailed}{outcome="${outcome}"} ${count}\n`)
    const audit = this.audit()
    const help = 'Whether the last audit of this console found everything accounted for.'
    yield heading(passed, 'gauge', help) + (audit ? `${passed} ${Number(audit.ok)}\n` : '')
    const when = 'When it ended, in seconds since 1970.'
    const often = 'How often this console audits by itself.'
    const { auditIntervalMs } = this
    yield (
      heading(interval, 'gauge', often) + (auditIntervalMs ? `${interval} ${auditIntervalMs / 1_000}\n` : '')
    )
    yield heading(audited, 'gauge', when) + (audit ? `${audited} ${audit.at / 1_000}\n` : '')
  }
}
