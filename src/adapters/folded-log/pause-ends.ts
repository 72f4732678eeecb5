import type { SettingsCommand } from '../../core/settings/commands.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { messageOf } from '../../errors.ts'
import { backOff } from '../../retry-forever.ts'
import type { Logger } from '../log.ts'

/** A SettingsLog. */
interface Settings {
  readonly state: SettingsState
  onChange(listener: (state: SettingsState) => void): () => void
  execute(command: SettingsCommand): Promise<unknown>
}

/** What timers can count to, in ms: about 24 days. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Ends pauses whose time is over by writing that into the settings. Forwarders and consoles all do it, and none waits for
 * another: the first one's event ends the pause, and the others find nothing to do. What is held goes on being held until
 * that event is folded.
 *
 * @returns how to stop it
 */
export function endPauses(settings: Settings, log: Pick<Logger, 'warn' | 'info'>): () => void {
  let timer: NodeJS.Timeout | null = null
  let isEnding = false
  let isStopped = false
  let failures = 0

  /** Waits for the first end; at once, where that has passed. At least `minMs`. */
  const schedule = (minMs = 0) => {
    if (timer) clearTimeout(timer)
    timer = null
    // Whoever ends pauses schedules again.
    if (isStopped || isEnding) return
    const ends = [...settings.state.destinations.values()].flatMap(({ pause }) => pause?.until ?? [])
    if (ends.length === 0) return
    const waitMs = Math.max(minMs, Math.min(...ends) - Date.now())
    timer = setTimeout(() => void end(), Math.min(waitMs, longestTimerMs))
  }

  const end = async () => {
    isEnding = true
    try {
      for (const { id, pause } of settings.state.destinations.values()) {
        const at = Date.now()
        if (isStopped || pause === null || pause.until === null || pause.until > at) continue
        await settings.execute({ type: 'resume_destination', id, pauseId: pause.id, at })
        log.info(
          { destination: id, pause: pause.id },
          'the time of a pause is over: its destination is resumed',
        )
      }
      failures = 0
    } catch (error) {
      if (!isStopped) log.warn(`a pause cannot be ended yet: ${messageOf(error)}`)
      failures++
    }
    isEnding = false
    schedule(failures === 0 ? 0 : backOff(failures))
  }

  const forget = settings.onChange(() => schedule(failures === 0 ? 0 : backOff(failures)))
  schedule()
  return () => {
    isStopped = true
    forget()
    if (timer) clearTimeout(timer)
  }
}
