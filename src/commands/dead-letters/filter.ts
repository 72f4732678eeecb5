import { Option } from 'commander'
import type { Command } from 'commander'
import type { Filter } from '../../console/dead-letters/filter.ts'
import { deadLetterReasons } from '../../core/delivery.ts'
import type { DeadLetterReason } from '../../core/delivery.ts'
import { parseMoment } from '../../core/moment.ts'
import { PostriderError } from '../../errors.ts'

export interface FilterOptions {
  reason?: string[]
  destination?: string[]
  since?: string
  until?: string
}

export const collect = (value: string, before: string[] | undefined): string[] => [...(before ?? []), value]

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--reason <reason>', `${deadLetterReasons.join(', ')}; can be repeated`).argParser(collect),
    )
    .addOption(new Option('--destination <id>', 'can be repeated').argParser(collect))
    .option('--since <time>', 'what failed since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'what failed before then: an ISO time (UTC), or a duration ago (30m)')
}

/** Throws PostriderError 'usage' that names the flag. */
export function readFilter(options: FilterOptions, now: number): Filter {
  for (const reason of options.reason ?? []) {
    if (!deadLetterReasons.includes(reason as DeadLetterReason))
      throw new PostriderError(
        'usage',
        `--reason is ${JSON.stringify(reason)}; it takes ${deadLetterReasons.join(', ')}`,
      )
  }
  const since = readMoment('--since', options.since, now)
  const until = readMoment('--until', options.until, now)
  if (since !== null && until !== null && since >= until)
    throw new PostriderError('usage', '--since is not before --until; nothing can lie between them')
  return {
    reasons: options.reason ? new Set(options.reason) : null,
    destinations: options.destination ? new Set(options.destination) : null,
    since,
    until,
  }
}

function readMoment(flag: string, text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const at = parseMoment(text, now)
  if (at !== null) return at
  throw new PostriderError(
    'usage',
    `${flag} is ${JSON.stringify(text)}; it takes an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h`,
  )
}
