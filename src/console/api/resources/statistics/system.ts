import { z } from 'zod'
import { infrastructureSchema } from '../../../infrastructure/infrastructure.ts'
import { processViews } from '../../../statistics/processes.ts'
import { isoOrNull } from '../../../../core/iso-time.ts'
import { operation, type Operation } from '../../operation.ts'
import { count, healthShape, reachShape } from './schemas.ts'

export const processSchema = z
  .object({
    instance: z.string().describe('The process, from its start to its end.'),
    state: z
      .enum(['live', 'gone', 'stopped'])
      .describe('`gone`: three heartbeats are missing, and it did not say that it was stopped.'),
    roles: z.array(z.string()).describe('collector, forwarder, console.'),
    version: z.string(),
    host: z.string(),
    pid: count,
    startedAt: z.string(),
    seenAt: z.string().describe('When its last heartbeat came.'),
    heartbeatSeconds: z.number(),
    requestsInFlight: count.nullable().describe('Of a collector.'),
    partitions: z.array(
      z.object({
        topic: z.string(),
        partition: count,
        lag: count.nullable(),
        overdueMs: count
          .nullable()
          .describe('For how long the record that is next has been due; 0 before. Null: not known.'),
      }),
    ),
    endpoints: z.array(
      z.object({
        destinationId: z.string(),
        urlId: z.string(),
        limit: count,
        inFlight: count,
        queued: count,
        breaker: z.string(),
        pausedUntil: z.string().nullable(),
        ...healthShape,
      }),
    ),
    endpointsOmitted: count,
  })
  .meta({ id: 'Process' })

export const systemSchema = z
  .object({
    asOf: reachShape.asOf,
    collectorUrl: z.string().nullable().describe('Where senders reach the collectors; null if not known.'),
    processes: z.array(processSchema),
  })
  .meta({ id: 'System' })

export const systemOperations: Operation[] = [
  operation({
    id: 'showSystem',
    route: 'GET /system',
    command: 'system',
    role: 'reader',
    summary: 'All processes: what they run, which partitions they read, how they pace each URL',
    description: 'By the heartbeats of the last day.',
    success: {
      status: 200,
      description: 'Those that live first.',
      schema: systemSchema,
    },
    async handle(_, { statistics, collectorUrl, now }) {
      const store = await statistics()
      const asOf = isoOrNull(store.reach().asOf)
      return {
        status: 200,
        body: { asOf, collectorUrl, processes: processViews(store.processes(), now()) },
      }
    },
  }),
  operation({
    id: 'showInfrastructure',
    route: 'GET /infrastructure',
    command: 'infrastructure',
    role: 'reader',
    summary: 'Kafka, the schema registry and the topics: whether they answer, and what is wrong with them',
    success: { status: 200, description: 'Their state now.', schema: infrastructureSchema },
    async handle(_, { infrastructure }) {
      return { status: 200, body: await infrastructure.show() }
    },
  }),
]
