import { randomBytes } from 'node:crypto'
import { createSecrets } from '../../adapters/secrets.ts'
import { PostriderError } from '../../errors.ts'
import { freePort, isPortFree } from '../../local/ports.ts'
import type { Part } from '../../supervisor.ts'
import type { Context } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { untilAborted } from '../part-lives.ts'
import { startReceiver } from '../receive.ts'
import { withOpen } from '../with-open.ts'
import type { Arrivals } from './arrivals.ts'
import { demoId, ensureDemo, sealedDestinations } from './demo.ts'
import type { DevState } from './dev-state.ts'
import { notLeft } from './settings.ts'

export interface Demo {
  url: string
  /** Of the demo's source. */
  writeKey: string
  part: Part
  close(): Promise<void>
  /** What the user should know, a line each. */
  warnings: string[]
}

/** Where the receiver listens in a first run, when it is free. */
const firstPort = 4010
const settingsMs = 30_000
const urlOf = (port: number | string): string => `http://127.0.0.1:${port}/`

/**
 * Starts the demo's receiver and makes its source and destination. Throws `secrets_key` when the settings of
 * brokers that are the user's own hold secrets of another key: `dev` would deliver their calls unsigned or not at
 * all.
 */
export async function prepareDemo(
  context: Context,
  state: DevState,
  options: { port: number | null; arrivals: Arrivals; local: boolean },
): Promise<Demo> {
  const secret = state.get('DEV_SHARED_SECRET') ?? randomBytes(16).toString('hex')
  const before = state.get('DEV_RECEIVER_PORT')
  const port = options.port ?? (await portLikeBefore(Number(before ?? firstPort)))
  const receiver = await startReceiver({
    port,
    secret,
    onRequest: (webhook) => options.arrivals.take(webhook),
  })
  try {
    const { sealed, writeKey } = await putIntoSettings(context, options.local, {
      url: receiver.url,
      formerUrl: before === null ? null : urlOf(before),
      secret,
    })
    // Only now: until the destination has followed, its URL is that of the run before.
    await state.set({ DEV_SHARED_SECRET: secret, DEV_RECEIVER_PORT: String(port) })
    const missing = notLeft(context.config)
    return {
      url: receiver.url,
      writeKey,
      close: () => receiver.close(),
      part: {
        name: 'demo receiver',
        async run(signal) {
          await untilAborted(signal)
          await receiver.close()
        },
      },
      warnings: [
        ...sealed,
        ...(missing.length > 0
          ? [`set ${missing.join(', ')} in other terminals too: secrets of yours are not written down`]
          : []),
      ],
    }
  } catch (error) {
    await receiver.close()
    throw error
  }
}

const portLikeBefore = async (port: number): Promise<number> =>
  (await isPortFree(port)) ? port : freePort([port])

/** `sealed` has a line for each destination whose secrets cannot be opened. */
async function putIntoSettings(
  context: Context,
  local: boolean,
  receiver: Parameters<typeof ensureDemo>[2],
): Promise<{ sealed: string[]; writeKey: string }> {
  const secrets = createSecrets(context.config.secretsKeys)
  return withOpen(openSettings(context), async (settings) => {
    await settings.start(AbortSignal.timeout(settingsMs), 'fail')
    // On a Kafka of our own, the demo's secret is simply set again when its key is lost.
    const sealed = sealedDestinations(settings, secrets, local ? demoId : null)
    if (sealed.length > 0 && !local)
      throw new PostriderError(
        'secrets_key',
        `${sealed.join('; ')}; or keep \`dev\` apart from that deployment with TOPIC_PREFIX and GROUP_ID of its own`,
      )
    await ensureDemo(settings, secrets, receiver)
    return { sealed, writeKey: settings.state.sources.get(demoId)!.writeKey }
  })
}
