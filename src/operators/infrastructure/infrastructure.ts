import { z } from 'zod'

const count = z.number().int()

const topicStateSchema = z
  .object({
    name: z.string(),
    exists: z.boolean(),
    partitions: count,
    copies: count.describe('The fewest of any partition.'),
    underReplicated: count.describe('Partitions of which a copy is not in sync.'),
    withoutLeader: count.describe('Partitions that can be neither read nor written now.'),
    cleanupPolicy: z.string().nullable(),
    retentionMs: z.number().nullable().describe('Null: kept for ever, or compacted.'),
    maxMessageBytes: z.number().nullable(),
    problems: z.array(
      z.object({
        severity: z
          .enum(['error', 'warning'])
          .describe('`error` loses or holds up records; `warning` may be meant so.'),
        message: z.string(),
      }),
    ),
  })
  .meta({ id: 'TopicState' })

export const infrastructureSchema = z
  .object({
    at: z.iso.datetime().describe('When they were asked; they are asked at most once in five seconds.'),
    kafka: z.object({
      problem: z.string().nullable().describe('Why it does not answer; null where it does.'),
      addresses: z.array(z.string()).describe('Those of KAFKA_BROKERS.'),
      clusterId: z.string().nullable(),
      brokers: z.array(z.object({ id: count, host: z.string(), port: count, isController: z.boolean() })),
    }),
    registry: z.object({
      problem: z.string().nullable().describe('Why it does not answer; null where it does.'),
      url: z.string(),
      subjects: z.array(
        z.object({
          subject: z.string(),
          schemaId: count.nullable().describe('Of this version’s schema; null where it is not registered.'),
        }),
      ),
    }),
    topics: z.array(topicStateSchema).describe('Of this deployment, former retry tiers too.'),
  })
  .meta({ id: 'Infrastructure' })

export type Infrastructure = z.output<typeof infrastructureSchema>
export type TopicState = Infrastructure['topics'][number]
export type ClusterState = Omit<Infrastructure['kafka'], 'problem' | 'addresses'> & { topics: TopicState[] }

/** How long what was read is shown again, in ms: any number of open pages must not load the brokers. */
const freshMs = 5_000

/** Asks Kafka and the registry, which never rejects: what does not answer is described by its problem. */
export class InfrastructureView {
  readonly #read: () => Promise<Omit<Infrastructure, 'at'>>
  readonly #now: () => number
  #last: { at: number; found: Promise<Infrastructure> } | null = null

  /** @param now epoch ms */
  constructor(read: () => Promise<Omit<Infrastructure, 'at'>>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  show(): Promise<Infrastructure> {
    const at = this.#now()
    if (this.#last === null || at - this.#last.at >= freshMs || at < this.#last.at) {
      const found = this.#read().then((parts) => ({ at: new Date(at).toISOString(), ...parts }))
      this.#last = { at, found }
      // What could not be read is asked for again by the next one.
      found.catch(() => (this.#last = null))
    }
    return this.#last.found
  }
}
