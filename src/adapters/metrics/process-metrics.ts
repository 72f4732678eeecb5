import { heading, labels } from './exposition.ts'
import type { Exposed } from './exposition.ts'

/** A part of this process, as its metrics show it; read at each scrape. */
export interface ShownPart {
  name: string
  isReady(): boolean
  /** How often it was started again, by cause. */
  restarts: Readonly<Record<string, number>>
  /** By which version of the settings it works; 0 while it does not. */
  settingsVersion(): number
}

/** Which deployment a process belongs to, and how its parts are. */
export class ProcessMetrics implements Exposed {
  readonly #build: string
  readonly #parts: readonly ShownPart[]

  constructor(of: { version: string; topicPrefix: string; groupId: string; parts: readonly ShownPart[] }) {
    const { version, topicPrefix, groupId, parts } = of
    this.#build = labels({ version, topic_prefix: topicPrefix, group_id: groupId })
    this.#parts = parts
  }

  *expose(): Generator<string> {
    let text = heading('postrider_build_info', 'gauge', 'Always 1, for its labels.')
    text += `postrider_build_info${this.#build} 1\n`
    text += heading('postrider_part_ready', 'gauge', '1 while the part takes work, as /readyz says it.')
    for (const { name, isReady } of this.#parts)
      text += `postrider_part_ready${labels({ part: name })} ${Number(isReady())}\n`
    text += heading('postrider_part_restarts_total', 'counter', 'Restarts within the process, by cause.')
    for (const { name, restarts } of this.#parts)
      for (const [cause, count] of Object.entries(restarts))
        text += `postrider_part_restarts_total${labels({ part: name, cause })} ${count}\n`
    text += heading(
      'postrider_settings_version',
      'gauge',
      'The version of the settings that the part works by.',
    )
    for (const { name, settingsVersion } of this.#parts) {
      const version = settingsVersion()
      if (version > 0) text += `postrider_settings_version${labels({ part: name })} ${version}\n`
    }
    yield text
  }
}
