import type { OpenTransactions } from '../kafka/open-transactions.ts'
import type { SettingsLogCounts } from '../folded-log/settings-follower.ts'
import { escapeValue, heading, labels } from './exposition.ts'
import type { Exposed } from './exposition.ts'

const ignored = 'postrider_ignored_records_total'
const held = 'postrider_settings_held'
const transaction = 'postrider_open_transaction_seconds'

/**
 * What is read of Postrider's own logs (settings, erasures, suppressions and memberships), and which partitions, those of
 * calls and tiers too, cannot be read on. Parts that share a process share one.
 */
export class LogCounts implements SettingsLogCounts, Exposed {
  readonly #ignored = new Map<string, number>()
  /** Each part of a process follows the settings by itself. */
  #held = 0

  readonly #transactions = new Set<OpenTransactions>()

  /** What a part knows of open transactions is shown until what it returns is called. */
  watch(transactions: OpenTransactions): () => void {
    this.#transactions.add(transactions)
    return () => void this.#transactions.delete(transactions)
  }

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
    yield this.#exposeTransactions()
  }

  /** Parts of a process may follow the same topic. */
  #exposeTransactions(): string {
    const longest = new Map<string, number>()
    for (const transactions of this.#transactions)
      for (const { topic, partition, ms } of transactions.held()) {
        const which = labels({ topic, partition: String(partition) })
        longest.set(which, Math.max(ms, longest.get(which) ?? 0))
      }
    const help = 'For how long an open transaction has held a partition; not shown below 10 s.'
    const lines = [...longest].map(([which, ms]) => `${transaction}${which} ${ms / 1_000}\n`)
    return heading(transaction, 'gauge', help) + lines.join('')
  }
}
