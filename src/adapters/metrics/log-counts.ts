import type { SettingsLogCounts } from '../folded-log/settings-follower.ts'
import { escapeValue, heading } from './exposition.ts'
import type { Exposed } from './exposition.ts'

const ignored = 'postrider_ignored_records_total'
const held = 'postrider_settings_held'

/** What is read of Postrider's own logs: settings, erasures, suppressions and memberships. Parts that share a process share one. */
export class LogCounts implements SettingsLogCounts, Exposed {
  readonly #ignored = new Map<string, number>()
  /** Each part of a process follows the settings by itself. */
  #held = 0

  ignored(topic: string): void {
    this.#ignored.set(topic, (this.#ignored.get(topic) ?? 0) + 1)
  }

  settingsHeld(isHeld: boolean): void {
    this.#held += isHeld ? 1 : -1
  }

  *expose(): Generator<string> {
    let text = heading(
      ignored,
      'counter',
      'Records of Postrider’s own topics that cannot be read and are ignored.',
    )
    for (const [topic, count] of this.#ignored) text += `${ignored}{topic="${escapeValue(topic)}"} ${count}\n`
    yield text
    const help = 'Whether the settings stand still at an event that this version cannot read.'
    yield `${heading(held, 'gauge', help)}${held} ${Number(this.#held > 0)}\n`
  }
}
