// What of a wanted destination's secrets has to be written: those that are there already stay as they are.
import { canonicalUrl } from '../delivery/endpoint-url.ts'
import type { HeaderEdit, NewSecret, SecretPair } from '../settings/commands.ts'
import { fault, type Fault } from '../settings/fault.ts'
import { activeSecrets } from '../settings/secrets.ts'
import type { Destination, SealedSecret } from '../settings/settings.ts'
import type { WantedDestination, WantedSecret } from './wanted-settings.ts'

/** What was looked at on the way. */
export interface SecretNotes {
  /** `field` as the file names it, below the destination. */
  faults: Fault[]
  /** Variables that are not set, and whose secrets stay. */
  kept: string[]
}

/** Stands in for a missing one, which is a fault already, so that no rule refuses the destination for that as well. */
const missing: NewSecret = {
  text: '-',
  fingerprint: '',
  seal: () => ({ keyId: '', iv: '', ciphertext: '', tag: '', fingerprint: '' }),
}

const isNotSet = (field: string, variable: string): Fault =>
  fault('usage', field, `${variable} is not set, and there is no such secret yet that could stay`)

/** Undefined when both are as they are to be. */
export function pairFor(
  { sharedSecret, earlierSecret }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): SecretPair | undefined {
  const active = current ? activeSecrets(current) : []
  const find = (field: 'sharedSecret' | 'earlierSecret', wanted: WantedSecret | null) => {
    if (wanted === null) return null
    const { variable, given } = wanted
    if (given) return active.find((sealed) => given.equals(sealed)) ?? given.make()
    const stays = current?.[field]
    if (stays) notes.kept.push(variable)
    else notes.faults.push(isNotSet(field, variable))
    return stays ?? missing
  }
  const pair = {
    sharedSecret: find('sharedSecret', sharedSecret),
    earlierSecret: find('earlierSecret', earlierSecret),
  }
  const isSame =
    pair.sharedSecret === (current?.sharedSecret ?? null) &&
    pair.earlierSecret === (current?.earlierSecret ?? null)
  return isSame ? undefined : pair
}

/** Headers to set and to take away. */
export function headerEditsFor(
  { urls }: WantedDestination,
  current: Destination | undefined,
  notes: SecretNotes,
): HeaderEdit[] {
  return urls.flatMap(({ url, headers }, index) => {
    const kept = current?.urls.find((endpoint) => canonicalUrl(endpoint.url) === canonicalUrl(url))
    const there = new Map((kept?.headers ?? []).map((header) => [header.name.toLowerCase(), header]))
    const edits = headers.flatMap(({ name, value: { variable, given } }): HeaderEdit[] => {
      const found = there.get(name.toLowerCase())
      there.delete(name.toLowerCase())
      if (given === null) {
        if (found) notes.kept.push(variable)
        else notes.faults.push(isNotSet(`urls.${index}.headers.${name}`, variable))
        return []
      }
      if (found && isSame(found, name, given.equals)) return []
      return [{ urlNumber: index + 1, name, value: given.make() }]
    })
    const removed = [...there.values()].map(({ name }) => ({ urlNumber: index + 1, name, value: null }))
    return [...edits, ...removed]
  })
}

const isSame = (
  found: { name: string; value: SealedSecret },
  name: string,
  equals: (sealed: SealedSecret) => boolean,
): boolean => found.name === name && equals(found.value)
