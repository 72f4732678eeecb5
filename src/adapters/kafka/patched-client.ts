import type { Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { createKafka as createPlainKafka } from './client.ts'
import { installPatches } from './patches/index.ts'

/**
 * A kafkajs client for Postrider's own processes, which need kafkajs patched (docs/kafkajs-patches.md).
 * @throws PostriderError `setup` where the installed kafkajs is not the one that the patches are written for
 */
export function createKafka(config: Pick<Config, 'kafka'>, log: Logger): Kafka {
  installPatches()
  return createPlainKafka(config, log)
}
