import type { Kafka } from 'kafkajs'
import { permissionsOn, type Permission } from '../../core/permissions.ts'
import { PostriderError, notSetUp } from '../../errors.ts'
import { missingPermissions } from './secure/authorized-operations.ts'
import { deniedMessage, describeKafkaError, noTls } from './kafka-error.ts'
import { loginBehind, type KafkaLogin } from './secure/kafka-login.ts'
import { probeListener } from './secure/listener-probe.ts'

/**
 * PostriderError `setup` where brokers refuse the login, the certificate or what was asked, saying what to do; else the
 * error itself. Where the error alone does not say it, the brokers are asked; so it may take some seconds.
 * @param needs what the client needs the brokers to allow
 */
export async function explainKafkaError(
  error: unknown,
  kafka: Kafka,
  needs: readonly Permission[] = [],
): Promise<unknown> {
  if (error instanceof PostriderError) return error
  const login = loginBehind(kafka)
  const { kind, message, isRefusal } = describeKafkaError(error, login, needs)
  const refused = (why: string) => new PostriderError('setup', why, { cause: error })
  if (kind === 'permission' || kind === 'closed') {
    const missing = await missingPermissions(kafka, needs).catch(() => [])
    if (missing.length > 0) return refused(deniedMessage(login, missing))
  }
  if (kind === 'closed' && !isRefusal) {
    const found = await listenerProblem(login)
    return found === null ? error : refused(found)
  }
  return isRefusal ? refused(message) : error
}

/** What is wrong with how the brokers are asked, by the first of them that answers at all. */
async function listenerProblem({ brokers, mechanism, hasTls }: KafkaLogin): Promise<string | null> {
  for (const broker of brokers) {
    const listener = await probeListener(broker)
    if (listener.hasTls === null) continue
    if (hasTls && !listener.hasTls) return noTls
    if (!hasTls && listener.hasTls)
      return 'the brokers speak TLS at this port: set KAFKA_SSL=true, or check the port in KAFKA_BROKERS'
    if (mechanism === null && listener.mechanisms && listener.mechanisms.length > 0)
      return `the brokers ask for a login (SASL ${listener.mechanisms.join(', ')}): set KAFKA_SASL_MECHANISM`
    return null
  }
  return null
}

/**
 * Of topics that the brokers do not list: an error where that is because the user may not see some of them; null where
 * they do not exist. Throws what kafkajs throws, or where the brokers do not tell the two apart (before Kafka 2.3).
 */
export async function hiddenTopics(kafka: Kafka, topics: readonly string[]): Promise<PostriderError | null> {
  const hidden = await missingPermissions(kafka, permissionsOn('topic', topics, ['DESCRIBE']))
  return hidden.length > 0 ? new PostriderError('setup', deniedMessage(loginBehind(kafka), hidden)) : null
}

/** What to throw for topics that the brokers do not list. */
export async function missingTopics(kafka: Kafka, topics: readonly string[]): Promise<PostriderError> {
  const named =
    topics.length === 1 ? `topic ${topics[0]} does not exist` : `topics ${topics.join(', ')} do not exist`
  try {
    return (await hiddenTopics(kafka, topics)) ?? notSetUp(named)
  } catch {
    return notSetUp(`${named}, or this user may not see ${topics.length === 1 ? 'it' : 'them'}`)
  }
}
