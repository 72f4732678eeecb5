import { randomBytes } from 'node:crypto'
import { createSecrets } from '../../adapters/secrets.ts'
import { PostriderError } from '../../errors.ts'
import { freePort, isPortFree } from '../../local/ports.ts'
import type { Part } from '../../supervisor.ts'
import { type Context, withOpen } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { untilAborted } from '../part-lives.ts'
import { batchWords, startReceiver, type ReceivedWebhook } from '../receive.ts'
import { printable } from '../terminal.ts'
import { demoId, ensureDemo, sealedDestinations } from './demo.ts'
import type { DevState, Screen } from './dev.ts'
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

/** More lines than a person can follow are counted instead. */
const linesASecond = 20

/** What arrives at the demo's receiver: a line each on the screen, and callers that wait for one of them are notified. */
export class Arrivals {
  readonly #screen: Screen
  readonly #awaited = new Map<string, () => void>()
  #lines = 0
  #more = { verified: 0, others: 0 }
  #second: NodeJS.Timeout | null = null

  constructor(screen: Screen) {
    this.#screen = screen
  }

  take(webhook: ReceivedWebhook): void {
    this.#second ??= setTimeout(() => this.#endSecond(), 1_000).unref()
    if (this.#lines < linesASecond) {
      this.#lines++
      this.#screen.say(arrivalLine(webhook))
    } else {
      this.#more[webhook.signature === 'verified' ? 'verified' : 'others']++
    }
    if (webhook.messageId !== null && webhook.signature === 'verified')
      this.#awaited.get(webhook.messageId)?.()
  }

  /** Resolves to those that did not arrive with a verified signature before the signal aborts. */
  async missing(messageIds: readonly string[], signal: AbortSignal): Promise<string[]> {
    const waiting = new Set(messageIds)
    await new Promise<void>((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done)
        for (const id of messageIds) this.#awaited.delete(id)
        resolve()
      }
      for (const id of messageIds)
        this.#awaited.set(id, () => {
          waiting.delete(id)
          if (waiting.size === 0) done()
        })
      signal.addEventListener('abort', done)
      if (signal.aborted || waiting.size === 0) done()
    })
    return [...waiting]
  }

  #endSecond(): void {
    const { verified, others } = this.#more
    if (verified + others > 0)
      this.#screen.say(
        `  … and ${verified + others} more${others === 0 ? ', all verified' : `, ${others} NOT verified`}`,
      )
    this.#lines = 0
    this.#more = { verified: 0, others: 0 }
    this.#second = null
  }
}

/** Time, type, user, what it is about, and what its signature is worth, in columns. */
function arrivalLine(webhook: ReceivedWebhook): string {
  const time = new Date(webhook.at).toISOString().slice(11, 23)
  const type = webhook.type ?? batchWords(webhook) ?? `${webhook.method}, no call`
  const columns = [type.padEnd(9), (webhook.userId ?? '').padEnd(10), (webhook.event ?? '').padEnd(18)]
  return printable(`  ${time}  ${columns.join(' ')} signature ${webhook.signature}`)
}
