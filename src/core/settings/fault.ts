import { headerNameFaults, isHeaderValue } from '../delivery/static-headers.ts'
import type { Destination } from './settings.ts'

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

/**
 * Why no request can be made of a destination as the settings have it, in one line without any value; null when it
 * can. Commands write nothing of the kind, but a client that may write to the settings' topic can.
 */
export function destinationFault({ urls }: Pick<Destination, 'urls'>): string | null {
  if (urls.length === 0) return 'it has no URL'
  const ids = new Set<string>()
  for (const { id, url, headers } of urls) {
    if (ids.has(id)) return `it has two URLs with the id ${JSON.stringify(id)}`
    ids.add(id)
    if (URL.parse(url) === null) return `what stands as its URL ${JSON.stringify(id)} is none`
    for (const { name } of headers)
      if (headerNameFaults(name).length > 0)
        return `the name of a header of its URL ${JSON.stringify(id)} is none, or reserved`
  }
  return null
}

/** The same of a header's value, which is known only once it was decrypted. */
export const headerFault = (name: string, value: string): string | null =>
  isHeaderValue(value) ? null : `header ${JSON.stringify(name)} has a value that no header can have`
