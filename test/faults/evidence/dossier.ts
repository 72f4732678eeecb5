import type { DeliveryEvidence } from './attempt-checks.ts'
import type { CommitWatch } from '../watch/commit-watch.ts'
import { answerOf, reasonOf, type Evidence } from './evidence.ts'
import type { Rig } from '../rig.ts'

/** All that is known of one delivery, in the order of time: for whoever looks into a finding. */
export function dossierOf(
  { evidence, watch, rig }: { evidence: Evidence; watch: CommitWatch; rig: Rig },
  { calls, arrivals, retryRecords, deadLetters }: DeliveryEvidence,
): string[] {
  const found: { at: number; text: string }[] = []
  const finished = (topic: string, partition: number, offset: number): string => {
    const at = watch.finishedBy(topic, partition, offset)
    return at === Infinity ? 'never committed' : `committed by ${at}`
  }
  for (const { partition, offset, at } of calls)
    found.push({ at, text: `call ${partition}/${offset}, ${finished(rig.topics.calls, partition, offset)}` })
  for (const row of arrivals) {
    const get = (name: Parameters<typeof evidence.arrivals.get>[0]) => evidence.arrivals.get(name, row)
    const late = `read ${get('readAt') - get('at')} ms later`
    found.push({
      at: get('at'),
      text: `request to URL ${get('url') + 1} by process ${get('sender')}, ${late}: ${answerOf(get('answer'))}`,
    })
  }
  for (const row of retryRecords) {
    const get = (name: Parameters<typeof evidence.retryRecords.get>[0]) =>
      evidence.retryRecords.get(name, row)
    const { topic } = evidence.tierTopics[get('topic')]!
    const place = `${topic}/${get('partition')}/${get('offset')}`
    const counts = `retry ${get('timesScheduled')}, attempts ${get('attempts')}, URLs ${get('urls').toString(2)}`
    const times = `scheduled ${get('scheduledAt')}, first attempt ${get('firstAttemptAt')}, first scheduled ${get('firstScheduledAt')}, not before ${get('notBefore')}`
    found.push({
      at: get('at'),
      text: `${place}: ${counts}, ${times}, ${finished(topic, get('partition'), get('offset'))}`,
    })
  }
  for (const row of deadLetters) {
    const get = (name: Parameters<typeof evidence.deadLetters.get>[0]) => evidence.deadLetters.get(name, row)
    const counts = `attempts ${get('attempts')}, times scheduled ${get('timesScheduled')}`
    const outcomes = evidence.unexpectedDeadLetters.get(row) ?? ''
    found.push({ at: get('at'), text: `dead letter ${reasonOf(get('reason'))}: ${counts} ${outcomes}` })
  }
  return found.sort((a, b) => a.at - b.at).map(({ at, text }) => `    ${at} ${text}`)
}
