import { readFileSync } from 'node:fs'
import { openConsoleServer } from '../../adapters/http/console-server.ts'
import { urlAt } from '../../adapters/http/serving.ts'
import { ConsoleCounts } from '../../adapters/metrics/console-metrics.ts'
import type { LogCounts } from '../../adapters/metrics/log-counts.ts'
import { createSecrets } from '../../adapters/secrets.ts'
import { sendSample } from '../../adapters/webhook/sample-call.ts'
import { operations } from '../../console/api/operations.ts'
import type { ConsoleServices } from '../../console/api/services.ts'
import { because, checkStart } from '../check-start.ts'
import type { Context } from '../context.ts'
import { deploymentOf, erasuresOf, settingsOf, transportOf } from '../deployment.ts'
import { listeningPart, PartLives, untilAborted, type Life, type ListeningPart } from '../part-lives.ts'
import { openComputations, type OpenComputations } from '../computations/open-computations.ts'
import { openDeadLetters } from '../dead-letters/open-dead-letters.ts'
import { openDeletions } from '../deletions/open-deletions.ts'
import { openMessages, type OpenMessages } from '../why/open-messages.ts'
import { usageError } from '../flags.ts'

export interface OpenConsoleOptions extends Context {
  logCounts?: LogCounts
  /** CONSOLE_HOST unless given. */
  host?: string
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/**
 * The console as a part. It listens from its start to its end; behind that, it restarts while Kafka or the
 * registry is away and, a bounded number of times, after a bug. Throws `usage` without ADMIN_TOKEN. Its run rejects
 * with `local` for a port that is taken, and with `setup` where topics or schemas are missing.
 */
export function openConsole(options: OpenConsoleOptions): ListeningPart<ConsoleCounts> {
  const { config, log } = options
  const { adminToken } = config
  const host = options.host ?? config.consoleHost
  if (adminToken === null)
    throw usageError(
      'ADMIN_TOKEN is not set, and the console lets nobody in without one: set it to a long random text (openssl rand -hex 32)',
    )
  const counts = new ConsoleCounts()
  const lives = new PartLives('console', log, () => assemble(options))
  const listen = () =>
    openConsoleServer({
      port: config.consolePort,
      host,
      token: adminToken,
      version,
      operations,
      services: () => lives.ready,
      counts,
      log,
    })
  return {
    counts,
    checks: lives.checks,
    ...listeningPart(lives.part, listen, (port) =>
      log.info({ host, port }, `admin API at ${urlAt(host, port)}/api/v1/openapi.json`),
    ),
  }
}

function assemble(options: OpenConsoleOptions): Life<ConsoleServices> {
  const deployment = deploymentOf(options)
  const { config, kafka, log, codecs } = deployment
  const secrets = createSecrets(config.secretsKeys)
  const settings = settingsOf(deployment, options)
  const erasures = erasuresOf(deployment, options)
  const transport = transportOf(config)
  const deadLetters = openDeadLetters(
    options,
    async (signal) => {
      await settings.catchUp(signal)
      return settings.state.destinations
    },
    (signal) => erasures.current(signal),
  )
  return {
    heldUp: () => (settings.heldAt === null ? null : settings.problem),
    problem() {
      if (settings.problem !== null) return settings.problem
      return erasures.connected ? null : because('the deletions’ log cannot be read', erasures.trouble)
    },
    async run(signal, onReady) {
      const ending = new AbortController()
      let computations: OpenComputations | null = null
      const deletions = openDeletions(options, settings)
      let messages: OpenMessages | null = null
      try {
        await checkStart(kafka, config, log, 'console')
        await Promise.all([codecs.settings.ready(), settings.start(signal), erasures.start(signal)])
        computations = await openComputations({ ...options, settings }, ending.signal)
        messages = await openMessages(options, (stop) => erasures.current(stop))
        if (signal.aborted) return
        onReady({
          settings,
          secrets,
          sendSample: (destination) => sendSample(destination, { transport, secrets, now: Date.now() }),
          deadLetters,
          computations,
          deletions,
          messages,
          now: Date.now,
        })
        // A log that can never be read ends the part.
        await Promise.race([untilAborted(signal), settings.ended, erasures.ended])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        ending.abort()
        computations?.close()
        messages?.close()
        await Promise.all([deletions.close(), settings.close(), erasures.close(), transport.close(0)])
      }
    },
  }
}
