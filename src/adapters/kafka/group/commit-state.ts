import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** What a commit may carry as metadata: brokers take 4,096 bytes unless offset.metadata.max.bytes says otherwise. */
const maxMetadataLength = 4_000
const form = /^s1:(\d+):(\d+)\/(\d+):([\w-]*)$/

/**
 * A text as the metadata of a group's commits, in as many pieces as there are partitions. They are committed together,
 * under a number that differs from commit to commit. Null for a text that is too long for them.
 */
export function encodeCommitState(text: string, number: number, partitions: number): string[] | null {
  const encoded = deflateRawSync(text).toString('base64url')
  // The head of a piece is shorter than this.
  const room = maxMetadataLength - 64
  const pieces = Math.max(1, Math.ceil(encoded.length / room))
  if (pieces > partitions) return null
  return Array.from(
    { length: partitions },
    (_, index) => `s1:${number}:${index}/${pieces}:${encoded.slice(index * room, (index + 1) * room)}`,
  )
}

/** Null where the metadata is of no commit of `encodeCommitState`, or not all of one. */
export function decodeCommitState(
  metadata: readonly (string | null)[],
): { text: string; number: number } | null {
  const found = metadata.map((each) => form.exec(each ?? '')).filter((each) => each !== null)
  const [first] = found
  if (!first) return null
  const pieces = new Map(found.map(([, number, index, , piece]) => [`${number}:${index}`, piece!]))
  const [number, total] = [first[1]!, Number(first[3])]
  let encoded = ''
  for (let index = 0; index < total; index++) {
    const piece = pieces.get(`${number}:${index}`)
    if (piece === undefined) return null
    encoded += piece
  }
  try {
    return { text: inflateRawSync(Buffer.from(encoded, 'base64url')).toString(), number: Number(number) }
  } catch {
    return null
  }
}
