import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { renderBody } from '../../../src/core/call/body.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { Form } from '../../peers/peers.ts'
import type { Deployment } from '../../rig.ts'

/** The same calls in two topics: as Postrider reads them, and as bodies that are rendered already. */
export interface Backlog {
  topic(form: Form): string
  produce(forms: readonly Form[], count: number, nth: (index: number) => AnalyticsCall): Promise<void>
}

/**
 * @param urlOf where a call goes: a peer that is given bodies cannot see the source
 * @param beside topics that a peer keeps beside each, for what fails
 */
export async function makeBacklog(
  deployment: Deployment,
  urlOf: (call: AnalyticsCall) => string,
  beside: readonly string[] = ['failed'],
): Promise<Backlog> {
  const { kafka, topics, config } = deployment
  const topic = (form: Form) => (form === 'avro' ? topics.calls : `${topics.calls}.bodies`)
  const admin = kafka.admin()
  await admin.connect()
  const forms: readonly Form[] = ['avro', 'json']
  const made = [topic('json'), ...forms.flatMap((form) => beside.map((name) => `${topic(form)}.${name}`))]
  await createTopics(
    admin,
    made.map((each) => ({ topic: each, numPartitions: config.partitions.calls, replicationFactor: 1 })),
  )
  await admin.disconnect()
  return {
    topic,
    async produce(forms, count, nth) {
      if (forms.includes('avro')) await deployment.produce(count, nth, 'backlog')
      if (!forms.includes('json')) return
      const body = (index: number) => {
        const call = nth(index)
        const headers = { id: call.messageId, url: urlOf(call) }
        return { key: call.userId!, value: Buffer.from(renderBody(call)), headers }
      }
      await deployment.append(topic('json'), count, body, 'bodies')
    },
  }
}
