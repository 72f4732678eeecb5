import { randomBytes } from 'node:crypto'

function required(name: string): string {
  const value = process.env[name]
  if (!value)
    throw new Error(`${name} is not set: run tests by \`npm test\`, which starts a Kafka and a registry`)
  return value
}

/** The one Kafka and the one registry of this test run, started by scripts/test.ts. */
export const brokers = (): string[] => required('TEST_KAFKA_BROKERS').split(',')
export const registryUrl = (): string => required('TEST_REGISTRY_URL')

/** A topic prefix of this test's own, so that tests share brokers and nothing else. */
export const uniquePrefix = (): string => `t${randomBytes(5).toString('hex')}.`
