import type { TestContext } from 'node:test'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { subjectOf } from '../../../src/adapters/schema-registry/subjects.ts'
import { SettingsLog } from '../../../src/adapters/folded-log/settings-log.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { brokers, registryUrl, uniquePrefix } from './rig.ts'
import { createTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { runHere, type CommandResult } from './program-here.ts'
import { silentLog as log } from '../silent-log.ts'

/** The CLI as a user runs it, in this process, on a settings log of this test's own. */
export interface SettingsCli {
  run(...args: string[]): Promise<CommandResult>
  /** The lines of `--json` output. */
  json(...args: string[]): Promise<Record<string, unknown>[]>
  /** A settings log on the same topic, started, as a running part has it. */
  open(): Promise<SettingsLog>
}

export async function makeSettingsCli(
  t: TestContext,
  env: Record<string, string> = {},
): Promise<SettingsCli> {
  const prefix = uniquePrefix()
  const topics = topicNames(prefix)
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, log)
  const registry = { url: registryUrl(), username: null, password: null }
  const logs: SettingsLog[] = []
  const admin = kafka.admin()
  await admin.connect()
  await createTopics(admin, [{ topic: topics.settings, numPartitions: 1 }])
  t.after(async () => {
    await Promise.all(logs.map((one) => one.close()))
    await admin.deleteTopics({ topics: [topics.settings] })
    await admin.disconnect()
  })
  await new Registry(registry).register(subjectOf(topics.settings), recordSchema('settingsEvent'))

  const own = {
    KAFKA_BROKERS: brokers().join(','),
    SCHEMA_REGISTRY_URL: registryUrl(),
    TOPIC_PREFIX: prefix,
  }
  // A test may change its environment between two commands.
  const run = (...args: string[]) => runHere(t, args, { env: { ...own, ...env } })
  return {
    run,
    async json(...args) {
      const { status, stdout, stderr } = await run(...args, '--json')
      if (status !== 0) throw new Error(`exit code ${status}: ${stderr}`)
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    },
    async open() {
      const codec = createCodecs({ registry, topics, log }).settings
      const settings = new SettingsLog({ kafka, topic: topics.settings, codec, log })
      logs.push(settings)
      await settings.start(AbortSignal.timeout(20_000))
      return settings
    },
  }
}
