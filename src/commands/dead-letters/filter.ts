import type { Command } from 'commander'
import { noneText, unreadableText, type DeadLetterTerms } from '../../core/delivery/dead-letter-filter.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import { flagError, readPeriod, repeatable } from '../flags.ts'

export interface FilterOptions {
  reason?: string[]
  destination?: string[]
  status?: string[]
  since?: string
  until?: string
}

const allReasons = [...deadLetterReasons, unreadableText].join(', ')

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(repeatable('--reason <reason>', `${allReasons}; can be repeated`))
    .addOption(
      repeatable(
        '--destination <id>',
        `${noneText} for records that never became a delivery; can be repeated`,
      ),
    )
    .addOption(
      repeatable(
        '--status <status>',
        `the last HTTP status, or what else the last attempt came to (timeout, network …); ${noneText} without an attempt; can be repeated`,
      ),
    )
    .option('--since <time>', 'what failed since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'what failed before then: an ISO time (UTC), or a duration ago (30m)')
}

/** Throws PostriderError 'usage' that names the flag. */
export function readTerms(options: FilterOptions, now: number): DeadLetterTerms {
  for (const reason of options.reason ?? []) {
    if (reason !== unreadableText && !deadLetterReasons.includes(reason as DeadLetterReason))
      throw flagError('--reason', reason, allReasons)
  }
  const { reason, destination, status } = options
  return { reason, destination, status, ...readPeriod(options, now) }
}
