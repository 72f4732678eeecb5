import { methodPatch } from './patch.ts'

type CommittedOffsets = Record<string, Record<number, string>>

const offsetsOf = new WeakMap<object, Map<string, CommittedOffsets>>()

/**
 * All consumers that come from one kafkajs client keep what their group has committed in one object, and each empties it
 * whenever it joins. One that is assigned nothing so takes the entries of another, whose next fetch fails with a
 * TypeError and ends it. Now each has its own.
 */
export const ownCommittedOffsets = methodPatch({
  name: 'own-committed-offsets',
  file: 'src/cluster',
  method: 'committedOffsets',
  fields: {},
  madeWith: { brokers: [] },
  instead(this: object, _shared: unknown, { groupId }: { groupId: string }): CommittedOffsets {
    let groups = offsetsOf.get(this)
    if (!groups) offsetsOf.set(this, (groups = new Map()))
    let offsets = groups.get(groupId)
    if (!offsets) groups.set(groupId, (offsets = {}))
    return offsets
  },
})
