import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { overviewOf } from '../../console/statistics/overview.ts'
import { processViews } from '../../console/statistics/processes.ts'
import type { StatisticsStore } from '../../console/statistics/statistics-store.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { topicNames } from '../../core/topics.ts'
import { parseDuration } from '../../core/duration.ts'
import { loadContext, runAction, stopSignal } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { flagError } from '../flags.ts'
import { print } from '../output.ts'
import { withOpen } from '../with-open.ts'
import { fitted, frameOf } from './top-frame.ts'
import { withStatistics } from './with-statistics.ts'

const refreshMs = 2_000

export function topCommand(): Command {
  return new Command('top')
    .description(
      'A live table of destinations and processes, every two seconds, until Ctrl-C: rates of the last minutes, ' +
        'success, durations, what is in flight and queued, circuit breakers, lag. Where the output is no terminal ' +
        'it prints one table and ends.',
    )
    .option('--window <duration>', 'how far back rates are counted: whole minutes from 1m to 24h', '1m')
    .action(runAction(run))
}

async function run({ window }: { window: string }, command: Command): Promise<void> {
  const windowMs = parseDuration(window)
  if (windowMs === null || windowMs % 60_000 !== 0 || windowMs < 60_000 || windowMs > 86_400_000)
    throw flagError('--window', window, 'a duration of whole minutes from 1m to 24h')
  const context = loadContext(command)
  const callsTopic = topicNames(context.config.topicPrefix).calls
  const frame = (store: StatisticsStore, settings: SettingsState) => {
    const now = Date.now()
    const overview = overviewOf({ store, settings, callsTopic, now, windowMs, hours: false })
    return frameOf(overview, processViews(store.processes(), now), now)
  }
  await withOpen(openSettings(context), (settings) =>
    withStatistics(context, async (store, statistics) => {
      const stop = stopSignal()
      await settings.start(stop)
      if (!process.stdout.isTTY) return print(frame(store, settings.state))
      const ended = new AbortController()
      const following = statistics.run(ended.signal)
      const leave = enterScreen()
      try {
        while (!stop.aborted) {
          const { columns, rows } = process.stdout
          draw(fitted(frame(store, settings.state), columns, rows))
          await delay(refreshMs, undefined, { signal: stop }).catch(() => {})
        }
      } finally {
        leave()
        ended.abort()
        await following
      }
    }),
  )
}

/** The terminal's other screen, without a cursor. The function that it gives brings back what was there before. */
function enterScreen(): () => void {
  process.stdout.write('\u001b[?1049h\u001b[?25l')
  const leave = () => process.stdout.write('\u001b[?25h\u001b[?1049l')
  // Also where a second Ctrl-C ends the process at once.
  process.once('exit', leave)
  return () => {
    process.off('exit', leave)
    leave()
  }
}

/** Each line is written over, so that nothing flickers. */
function draw(frame: string): void {
  const lines = frame.split('\n').map((line) => `${line}\u001b[K`)
  process.stdout.write(`\u001b[H${lines.join('\r\n')}\u001b[J`)
}
