import type { Command } from 'commander'
import type { Filter } from '../../console/dead-letters/dead-letter-store.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import { flagError, readPeriod, repeatable } from '../flags.ts'

export interface FilterOptions {
  reason?: string[]
  destination?: string[]
  since?: string
  until?: string
}

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(repeatable('--reason <reason>', `${deadLetterReasons.join(', ')}; can be repeated`))
    .addOption(repeatable('--destination <id>', 'can be repeated'))
    .option('--since <time>', 'what failed since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'what failed before then: an ISO time (UTC), or a duration ago (30m)')
}

/** Throws PostriderError 'usage' that names the flag. */
export function readFilter(options: FilterOptions, now: number): Filter {
  for (const reason of options.reason ?? []) {
    if (!deadLetterReasons.includes(reason as DeadLetterReason))
      throw flagError('--reason', reason, deadLetterReasons.join(', '))
  }
  const { since, until } = readPeriod(options, now)
  return {
    reasons: options.reason ? new Set(options.reason) : null,
    destinations: options.destination ? new Set(options.destination) : null,
    since,
    until,
  }
}
