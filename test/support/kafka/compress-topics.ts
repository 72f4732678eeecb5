import kafkajs from 'kafkajs'
import type { Deployment } from '../deployment/deployment.ts'

/** From now on the broker compresses what the deployment's topics are sent, with the codecs of Kafka's own Java clients. */
export async function compressAll({ admin, config }: Deployment, codec: string): Promise<void> {
  const type = kafkajs.ConfigResourceTypes.TOPIC
  const names = (await admin.listTopics()).filter((name) => name.startsWith(config.topicPrefix))
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({ type, name })),
  })
  await admin.alterConfigs({
    validateOnly: false,
    // What is not named goes back to its default.
    resources: resources.map(({ resourceName, configEntries }) => ({
      type,
      name: resourceName,
      configEntries: [
        ...configEntries
          .filter(({ configName, isDefault }) => !isDefault && configName !== 'compression.type')
          .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
        { name: 'compression.type', value: codec },
      ],
    })),
  })
}
