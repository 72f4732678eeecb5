import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ErasureLog } from '../../../src/adapters/folded-log/user-logs.ts'
import { openMessages } from '../../../src/operators/why/open.ts'
import { jsonOf } from '../../../src/operators/why/describe.ts'
import { lifeOfMessage, type MessageLife } from '../../../src/operators/why/why.ts'
import type { Deployment } from '../deployment/deployment.ts'
import { silentLog as log } from '../silent-log.ts'

/** As the admin API shows it. */
export interface ShownMessage {
  copies: ShownCopy[]
  omitted: number
}

export interface ShownCopy {
  received: { partition: number; offset: number; receivedBy: string | null; appendedAt: string | null }
  erased: boolean
  call: { type: string; userId: string } | null
  plan: {
    by: string
    isCertain: boolean
    destinations: { destinationId: string; deliveryId: string | null; reason: string | null }[]
  } | null
  steps: ({ at: string; what: string; deliveryId: string | null; repeat: boolean } & Record<
    string,
    unknown
  >)[]
  deliveries: ({ destinationId: string; state: string; at: string | null } & Record<string, unknown>)[]
  record: ({ state: string } & Record<string, unknown>) | null
}

export interface Messages {
  /** With an index under this folder; in one of its own unless given. */
  life(messageId: string, folder?: string): Promise<MessageLife>
  shown(messageId: string, folder?: string): Promise<ShownMessage>
  /** Where the index is. */
  folder: string
}

/** What `why` finds out, in this process; ended before the deployment is. */
export async function messagesOf(deployment: Deployment): Promise<Messages> {
  const { config, kafka, topics, codecs } = deployment
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const erasures = new ErasureLog({
    kafka,
    topic: topics.erasures,
    codec: codecs.erasures,
    log,
    maxWaitMs: 50,
  })
  deployment.endFirst(async () => {
    await erasures.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  await erasures.start()
  const life = async (messageId: string, storePath = folder): Promise<MessageLife> => {
    const open = await openMessages(
      { config: { ...config, storePath }, kafka, log, topics, codecs },
      (signal) => erasures.current(signal),
    )
    try {
      return await lifeOfMessage(messageId, open)
    } finally {
      await open.close()
    }
  }
  return {
    life,
    shown: async (messageId, storePath) => jsonOf(await life(messageId, storePath)) as ShownMessage,
    folder,
  }
}
