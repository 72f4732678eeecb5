import { join } from 'node:path'
import { findJava } from '../../src/local/java-server.ts'
import { sharedSecret } from '../calls.ts'
import { Child } from '../child.ts'
import { goProgram, javaClasses } from '../programs.ts'
import { measuredCore } from '../rig.ts'

/** `avro`: records as Postrider reads them. `json`: bodies that are rendered already, for who decodes Avro slowly. */
export type Form = 'avro' | 'json'

export interface PeerOrder {
  /** Of the deployment: where Kafka and the registry are. */
  env: Record<string, string>
  topic: string
  groupId: string
  form: Form
  /** A record goes to the one that its source or its header names by number. */
  urls: string[]
  inFlight: number
  /** How long what fails waits until it is tried again, as often as it takes; undefined: it is kept, and that is all. */
  retryMs?: number
}

/** Another program that makes signed POSTs out of records in Kafka. */
export interface Peer {
  name: string
  start(order: PeerOrder): Child
}

/** Those that can be built here; what is missing for the others has been said. */
export async function availablePeers(): Promise<Peer[]> {
  return [bento(), await parallelConsumer()].filter((peer) => peer !== null)
}

const environment = ({ env, topic, groupId, inFlight, retryMs }: PeerOrder) => ({
  ...(retryMs !== undefined && { RETRY_MS: String(retryMs) }),
  KAFKA_BROKERS: env.KAFKA_BROKERS!,
  SCHEMA_REGISTRY_URL: env.SCHEMA_REGISTRY_URL!,
  TOPIC: topic,
  GROUP_ID: groupId,
  IN_FLIGHT: String(inFlight),
  SHARED_SECRET: sharedSecret,
})

export function bento(): Peer | null {
  const program = goProgram('peers/bento')
  if (program === null) return null
  return {
    name: 'Bento',
    start(order) {
      const { urls, form, retryMs } = order
      const env = { ...environment(order), URL: urls[0]!, URLS: urls.join(','), ...bentoFlags(order) }
      const several = retryMs === undefined ? 'ten.yaml' : 'outage.yaml'
      const config = join(import.meta.dirname, 'bento', urls.length > 1 ? several : `${form}.yaml`)
      return new Child(program, { core: measuredCore, args: ['-c', config], env, endBy: 'SIGTERM' })
    },
  }
}

/** An output keeps two idle connections to a host: with many copies of it none has to be opened again. */
const bentoFlags = ({ urls, inFlight }: PeerOrder) => {
  const perCopy = urls.length === 1 ? 1 : 8
  return { COPIES: String(inFlight / perCopy), IN_FLIGHT: String(perCopy), GOGC: '400' }
}

async function parallelConsumer(): Promise<Peer | null> {
  const classPath = javaClasses('peers/parallel-consumer')
  if (classPath === null) return null
  const java = await findJava()
  return {
    name: 'Parallel Consumer',
    start(order) {
      const env = { ...environment(order), URLS: order.urls.join(','), FORM: order.form }
      const args = ['-Xmx1g', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error', '-cp', classPath, 'Posts']
      return new Child(java, { core: measuredCore, args, env, endBy: 'SIGTERM' })
    },
  }
}
