/** What a group committed for one partition. */
export interface Commit {
  groupId: string
  topic: string
  partition: number
  position: number
  metadata: string
}

/** From this version on a key tells of a group, not of a commit. */
const firstOtherKey = 2
/** Kafka's OffsetCommitValue.json: from 3 on an epoch stands behind the position, and 4 writes lengths as varints. */
const firstWithEpoch = 3
const firstCompact = 4
const lastKnown = 4

/**
 * Reads a record of `__consumer_offsets` (Kafka's OffsetCommitKey and OffsetCommitValue). Null for those that are no
 * commit: what tells of a group's members, and what takes a commit away. Throws for a value of an unknown version.
 */
export function readCommit(key: Buffer | null, value: Buffer | null): Commit | null {
  if (!key || !value || key.readInt16BE(0) >= firstOtherKey) return null
  const group = readString(key, 2)
  const topic = readString(key, group.end)
  const version = value.readInt16BE(0)
  if (version > lastKnown) throw new Error(`a commit of version ${version}, which is not known here`)
  const at = version >= firstWithEpoch ? 14 : 10
  return {
    groupId: group.text,
    topic: topic.text,
    partition: key.readInt32BE(topic.end),
    position: Number(value.readBigInt64BE(2)),
    metadata: version >= firstCompact ? readCompactString(value, at) : readString(value, at).text,
  }
}

function readString(buffer: Buffer, at: number): { text: string; end: number } {
  const end = at + 2 + buffer.readInt16BE(at)
  return { text: buffer.toString('utf8', at + 2, end), end }
}

/** Its length plus one stands before it, seven bits a byte. */
function readCompactString(buffer: Buffer, at: number): string {
  let length = 0
  for (let shift = 0; ; shift += 7) {
    const byte = buffer[at++]!
    length |= (byte & 127) << shift
    if (byte < 128) return buffer.toString('utf8', at, at + length - 1)
  }
}
