// What tallies cost a call by themselves: a code for each delivery, its place in the log of results, and for each commit
// the sums, the tally and its Avro. With URLs and durations, and with counts alone, in turns within one process, since
// the difference is far below what two runs of a forwarder differ by.
import pino from 'pino'
import { createCodecs } from '../../src/adapters/schema-registry/codecs.ts'
import { loadConfig } from '../../src/config/config.ts'
import { deliveryEvent } from '../../src/core/ledger/delivery-event.ts'
import { ResultCodes } from '../../src/core/ledger/result-codes.ts'
import { ResultLog, noSums } from '../../src/core/ledger/result-log.ts'
import { topicNames } from '../../src/core/topics.ts'

/** As a forwarder at full load has them. */
const perTally = 500
const turns = 4_000
const endpoint = { destinationId: 'crm', id: 'u1' }

const config = loadConfig(process.env)
const log = pino({ level: 'warn' }, pino.destination(2))
const { deliveries } = createCodecs({
  registry: config.registry,
  topics: topicNames(config.topicPrefix),
  log,
})
await deliveries.ready()

const codes = new ResultCodes()
const results = new ResultLog()
const codeOf = {
  counts: () => codes.code(endpoint.destinationId, 'delivered'),
  content: (durationMs: number) => codes.delivered(endpoint, durationMs),
}
type Side = keyof typeof codeOf

let bytes = 0
function commit(side: Side, start: number): void {
  for (let index = 0; index < perTally; index++)
    results.add(start + index, codeOf[side](2 + ((index * 7) % 60)), true)
  const runs = [{ start, end: start + perTally }]
  const sums = noSums()
  results.sum(runs, sums)
  const tally = {
    ...{ id: 'Zk3vQ0aYx9Lm', predecessor: 'Hq8rT2bWc5Np', group: config.groupId, owner: 'member/1' },
    ...{ start, position: start + perTally, before: [], finished: [0, perTally], lost: [], earlier: [] },
    ...{ records: sums.records, counts: codes.named(sums.byCode), held: [] },
  }
  const event = deliveryEvent('tally', 1_800_000_000_000, { topic: 'analytics.calls', partition: 0, tally })
  bytes += deliveries.encode(event).length
  results.drop(runs)
}

const spent = { counts: 0, content: 0 }
for (let turn = -turns; turn < turns; turn++) {
  for (const side of turn % 2 === 0 ? (['counts', 'content'] as const) : (['content', 'counts'] as const)) {
    const began = performance.now()
    commit(side, (turn + turns) * perTally)
    // The first half is for the compiler.
    if (turn >= 0) spent[side] += performance.now() - began
  }
}
const microsOf = (side: Side) => (spent[side] * 1_000) / (turns * perTally)
process.send!({
  kind: 'tallied',
  counts: microsOf('counts'),
  content: microsOf('content'),
  bytes: bytes / (4 * turns),
})
process.on('disconnect', () => process.exit())
