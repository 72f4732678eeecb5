import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { ReportWriter } from '../../adapters/kafka/write/report-writer.ts'
import { version } from '../../version.ts'
import type { Part } from '../../supervisor.ts'
import type { Context } from '../context.ts'
import { ProcessReports, type PartReport } from './process-reports.ts'

/** Heartbeats of this process and summaries of its collector, as a part that stands before the parts it reports on. */
export function openReports(context: Context, parts: readonly PartReport[]): Part {
  const { kafka, log, topics, codecs } = context
  return new ProcessReports({
    sink: new ReportWriter({ kafka, topic: topics.deliveries, codec: codecs.deliveries, log }),
    log,
    identity: {
      instance: randomBytes(9).toString('base64url'),
      version,
      host: hostname(),
      pid: process.pid,
      startedAt: Math.round(Date.now() - process.uptime() * 1_000),
    },
    parts,
  })
}
