/** Why a command is refused. The message stands alone: it names what is wrong, and never repeats a secret. */
export interface Fault {
  /** `usage`: wrong whatever the state. `not_found`, `conflict`: wrong on this state. */
  code: 'usage' | 'not_found' | 'conflict'
  /** The command's field, as the admin API names it. */
  field: string
  message: string
}

export function fault(code: Fault['code'], field: string, message: string): Fault {
  return { code, field, message }
}

/** The fault, or none. */
export function faultIf(isWrong: boolean, code: Fault['code'], field: string, message: string): Fault[] {
  return isWrong ? [fault(code, field, message)] : []
}

/** As many are named. */
export const maxFaults = 100

/** Faults in one line. */
export function faultsText(faults: readonly { message: string }[], max = maxFaults): string {
  const named = faults.slice(0, max).map(({ message }) => message)
  if (faults.length > max) named.push(`and ${faults.length - max} more`)
  return named.join('; ')
}

const order = ['usage', 'not_found', 'conflict'] as const

/** The one code for several faults: the one that its author alone can fix comes first. */
export function leadingCode(faults: readonly Fault[]): Fault['code'] {
  return order.find((code) => faults.some((fault) => fault.code === code)) ?? 'conflict'
}
