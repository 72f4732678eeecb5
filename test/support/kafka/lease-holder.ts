// A process that holds a lease: says 'held', then 'ok' or an error's code for each 'check'.
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { GroupLease, type LeaseOptions } from '../../../src/adapters/kafka/group/lease.ts'
import type { PostriderError } from '../../../src/errors.ts'
import { silentLog } from '../silent-log.ts'

const { brokers, ...options } = JSON.parse(process.argv[2]!) as Omit<LeaseOptions, 'kafka'> & {
  brokers: string[]
}
const kafka = createKafka({ kafka: { brokers, ssl: false, sasl: null } }, silentLog)
const lease = await GroupLease.acquire({ kafka, ...options })
process.on('disconnect', () => process.exit())
process.on('message', () => {
  try {
    lease.check()
    process.send!('ok')
  } catch (error) {
    process.send!((error as PostriderError).code)
  }
})
process.send!('held')
