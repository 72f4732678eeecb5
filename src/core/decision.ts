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

/** One command makes one event, or none when nothing is to be changed; or it is refused with every fault. */
export type DecisionOf<E> = { accepted: true; event: E | null } | { accepted: false; faults: Fault[] }

export const accepted = <E>(event: E | null): DecisionOf<E> => ({ accepted: true, event })

export const refused = (code: Fault['code'], field: string, message: string): DecisionOf<never> => ({
  accepted: false,
  faults: [fault(code, field, message)],
})

export const maxNameLength = 200

/** The rule for ids of sources and destinations (docs/destinations.md). */
export function idFaults(id: string): Fault[] {
  const isValid = /^[a-z0-9][a-z0-9_-]{0,63}$/.test(id)
  const rule = 'must be 1-64 of a-z, 0-9, "_" and "-", and begin with a letter or digit'
  return faultIf(!isValid, 'usage', 'id', `id ${JSON.stringify(id)} ${rule}`)
}

export function nameFaults(name: string): Fault[] {
  if (name.trim() === '') return [fault('usage', 'name', 'the name is empty')]
  // A name is printed in terminals and tables.
  if (/\p{Cc}/u.test(name)) return [fault('usage', 'name', 'the name holds control characters')]
  const message = `the name is ${name.length} characters long, at most ${maxNameLength} are allowed`
  return faultIf(name.length > maxNameLength, 'usage', 'name', message)
}
