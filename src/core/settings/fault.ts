import type { SettingsEvent } from './events.ts'

/** Why a command is refused. The message stands alone: it names what is wrong, and never repeats a secret. */
export interface Fault {
  /** `usage`: wrong whatever the state. `not_found`, `conflict`: wrong on this state. */
  code: 'usage' | 'not_found' | 'conflict'
  /** The command's field, as the admin API names it. */
  field: string
  message: string
}

/** One command makes one event, or none when nothing is to be changed; or it is refused with every fault. */
export type Decision = { accepted: true; event: SettingsEvent | null } | { accepted: false; faults: Fault[] }

const order = ['usage', 'not_found', 'conflict'] as const

/** The one code for several faults: the one that its author alone can fix comes first. */
export function leadingCode(faults: readonly Fault[]): Fault['code'] {
  return order.find((code) => faults.some((fault) => fault.code === code)) ?? 'conflict'
}
