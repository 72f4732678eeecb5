import type { Logger } from '../../adapters/log.ts'
import type { SettingsLog } from '../../adapters/settings-log.ts'
import { messageOf } from '../../errors.ts'

/** Writes a 410 into the settings, so that `destinations show` says it; once per endpoint. */
export function goneReporter(
  settings: SettingsLog,
  log: Logger,
): (destinationId: string, urlId: string) => void {
  const reporting = new Set<string>()
  return (destinationId, urlId) => {
    const key = `${destinationId}/${urlId}`
    const endpoint = settings.state.destinations.get(destinationId)?.urls.find(({ id }) => id === urlId)
    if (!endpoint || endpoint.goneAt !== null || reporting.has(key)) return
    reporting.add(key)
    settings
      .execute({ type: 'report_endpoint_gone', destinationId, urlId, at: Date.now() })
      .catch((error: unknown) =>
        log.warn({ destination: destinationId, urlId }, `not noted as gone: ${messageOf(error)}`),
      )
      .finally(() => reporting.delete(key))
  }
}
