// Keeps a statistics' file up with the ledger until it is killed. Argument: the folder. Says when it has begun.
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Statistics } from '../../../src/operators/statistics/follower.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { silentLog } from '../silent-log.ts'

const [, , folder] = process.argv
const config = loadConfig(process.env)
const topics = topicNames(config.topicPrefix)
const codecs = createCodecs({ registry: config.registry, topics, log: silentLog })
const kafka = createKafka(config, silentLog)
const given = { kafka, topics, groupId: config.groupId, folder: folder!, codecs, log: silentLog }
const statistics = await Statistics.open(given)
process.send!('begun')
await statistics.run(new AbortController().signal)
