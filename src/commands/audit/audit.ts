import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { openAuditSource } from '../../adapters/kafka/read/audit-source.ts'
import { SqliteKeySet } from '../../adapters/store/key-set.ts'
import { audit } from '../../console/audit/audit.ts'
import type { AuditReport } from '../../core/ledger/audit-report.ts'
import { auditFailure } from '../../core/operational/audit-failure.ts'
import { messageOf } from '../../errors.ts'
import { lineOf, pageOf } from './describe.ts'
import { loadContext, runAction, stopSignal } from '../context.ts'
import { print, printJson } from '../output.ts'
import { readPeriod } from '../flags.ts'
import { sendFound } from '../operational/send-event.ts'
import { withProgress } from '../progress-bar.ts'

/** Between two audits of `--follow`. */
const followMs = 5_000

export function auditCommand(): Command {
  return new Command('audit')
    .description(
      'Proves, or disproves, that every call is accounted for: that each delivery was delivered, waits in a retry ' +
        'tier, is a dead letter, was skipped or was erased, and that no offset was passed over. Reads the ledger, ' +
        'the calls, the retry tiers and the dead letters; forwarders may run meanwhile. Exits with 1 if anything ' +
        'is missing.',
    )
    .option('--since <time>', 'what was committed since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'what was committed before then: an ISO time (UTC), or a duration ago (30m)')
    .option('--follow', 'again and again, a line each time, until stopped')
    .option('--json', 'the report as one JSON object (with --follow one a line)')
    .action(runAction(run))
}

async function run(
  options: { since?: string; until?: string; follow?: true; json?: true },
  command: Command,
): Promise<void> {
  const period = readPeriod(options, Date.now())
  const deployment = loadContext(command)
  const source = openAuditSource({ ...deployment, groupId: deployment.config.groupId })
  const signal = stopSignal()
  const once = (): Promise<AuditReport> =>
    withProgress((bar) =>
      audit(source, () => new SqliteKeySet(), {
        ...period,
        signal,
        progress: (phase, done, total) =>
          bar.show(`reading ${phase} {bar} {value}/{total}, {eta_formatted} left`, done, total),
      }),
    )
  /** Found again, it is no news. */
  let reported: string | null = null
  do {
    const report = await once().catch((error: unknown) => {
      if (signal.aborted) return null
      throw error
    })
    if (!report) return
    if (!report.ok) process.exitCode = 1
    if (options.json) printJson(report)
    else print(options.follow && report.ok ? lineOf(report, Date.now()) : pageOf(report))
    const failure = auditFailure(report, Date.now())
    if (failure && failure.identity !== reported)
      await sendFound(deployment, failure).then(
        () => (reported = failure.identity),
        (error: unknown) => deployment.log.warn(`no operational event was sent: ${messageOf(error)}`),
      )
    if (options.follow) await delay(followMs, undefined, { signal }).catch(() => {})
  } while (options.follow && !signal.aborted)
}
