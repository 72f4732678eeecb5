import { connect } from 'node:net'

/** What kafkajs does not speak of Kafka's protocol: https://kafka.apache.org/protocol.html. */
interface RawRequest {
  apiKey: number
  version: number
  /** Flexible versions have tagged fields behind each header. */
  isFlexible: boolean
  body: Buffer
}

const withinMs = 20_000
const electionMs = 15_000
const clientId = 'faults'

const int16 = (value: number) => Buffer.from([value >> 8, value & 255])
const int32 = (value: number) => Buffer.concat([int16((value >> 16) & 0xffff), int16(value & 0xffff)])
const string = (text: string) => Buffer.concat([int16(text.length), Buffer.from(text)])
const noTags = Buffer.from([0])
/** The length of what is compact is one more than it is, seven bits a byte. */
const compactLength = (length: number) =>
  length < 127 ? Buffer.from([length + 1]) : Buffer.from([((length + 1) & 127) | 128, (length + 1) >> 7])
const compactString = (text: string) => Buffer.concat([compactLength(text.length), Buffer.from(text)])
const compactArray = (items: readonly Buffer[]) => Buffer.concat([compactLength(items.length), ...items])

/** Sends one request over a connection of its own; resolves to the answer's body. `broker` is `host:port`. */
function ask(broker: string, { apiKey, version, isFlexible, body }: RawRequest): Promise<Buffer> {
  const [host, port] = broker.split(':') as [string, string]
  const tags = isFlexible ? noTags : Buffer.alloc(0)
  const head = [int16(apiKey), int16(version), int32(1), string(clientId), tags]
  const request = Buffer.concat([...head, body])
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) })
    let answer = Buffer.alloc(0)
    socket.setTimeout(withinMs, () => socket.destroy(new Error(`${broker} does not answer`)))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`${broker} closed the connection`)))
    socket.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      if (answer.length < 4 || answer.length < 4 + answer.readInt32BE(0)) return
      // Behind the size and the request's number.
      resolve(answer.subarray(8 + tags.length))
      socket.destroy()
    })
    socket.write(Buffer.concat([int32(request.length), request]))
  })
}

/** The node that leads the controllers' quorum, as this broker sees it; null while there is none. */
export async function quorumLeader(broker: string): Promise<number | null> {
  const name = compactString('__cluster_metadata')
  const topic = Buffer.concat([name, compactArray([Buffer.concat([int32(0), noTags])]), noTags])
  // DescribeQuorum 0.
  const request = { apiKey: 55, version: 0, isFlexible: true }
  const answer = await ask(broker, { ...request, body: Buffer.concat([compactArray([topic]), noTags]) })
  // The answer's own error, one topic with its name, one partition with its number and error, then the leader.
  const atError = 2 + 1 + name.length + 1 + 4
  const error = answer.readInt16BE(0) || answer.readInt16BE(atError)
  if (error !== 0) throw new Error(`DescribeQuorum failed with ${error}`)
  const leader = answer.readInt32BE(atError + 2)
  return leader < 0 ? null : leader
}

/** Sets the replicas of each partition; kafkajs sends the same and misreads the answer. Throws where one is refused. */
export async function reassign(
  broker: string,
  partitions: readonly { topic: string; partition: number; replicas: readonly number[] }[],
): Promise<void> {
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([topic, each]) => {
    const places = each.map(({ partition, replicas }) =>
      Buffer.concat([int32(partition), compactArray(replicas.map(int32)), noTags]),
    )
    return Buffer.concat([compactString(topic), compactArray(places), noTags])
  })
  // AlterPartitionReassignments 0.
  const answer = await ask(broker, {
    ...{ apiKey: 45, version: 0, isFlexible: true },
    body: Buffer.concat([int32(electionMs), compactArray(topics), noTags]),
  })
  const reader = new AnswerReader(answer, 4)
  const error = reader.int16()
  if (error !== 0) throw new Error(`AlterPartitionReassignments failed with ${error}`)
  reader.skipCompactString()
  for (let topicsLeft = reader.compactLength(); topicsLeft > 0; topicsLeft--) {
    reader.skipCompactString()
    for (let left = reader.compactLength(); left > 0; left--) {
      const partition = reader.int32()
      const refused = reader.int16()
      if (refused !== 0) throw new Error(`the reassignment of partition ${partition} failed with ${refused}`)
      reader.skipCompactString()
      reader.skipTags()
    }
    reader.skipTags()
  }
}

/** Reads an answer from one place on. */
class AnswerReader {
  readonly #answer: Buffer
  #at: number

  constructor(answer: Buffer, at: number) {
    this.#answer = answer
    this.#at = at
  }

  int16(): number {
    this.#at += 2
    return this.#answer.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#answer.readInt32BE(this.#at - 4)
  }

  skipString(): void {
    this.#at += Math.max(0, this.int16())
  }

  /** Of an array, or of a text; null is as long as none. */
  compactLength(): number {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.#answer[this.#at++]!
      length |= (byte & 127) << shift
      if (byte < 128) return Math.max(0, length - 1)
    }
  }

  skipCompactString(): void {
    this.#at += this.compactLength()
  }

  /** None are known of the versions that are asked for. */
  skipTags(): void {
    this.#at += 1
  }
}

/** Elects the first replica of each partition as its leader; resolves to how many got another leader by it. */
export async function electPreferred(
  broker: string,
  partitions: ReadonlyMap<string, readonly number[]>,
): Promise<number> {
  const topics = [...partitions].map(([topic, ids]) =>
    Buffer.concat([string(topic), int32(ids.length), ...ids.map(int32)]),
  )
  const preferredKind = Buffer.from([0])
  // ElectLeaders 1.
  const answer = await ask(broker, {
    ...{ apiKey: 43, version: 1, isFlexible: false },
    body: Buffer.concat([preferredKind, int32(topics.length), ...topics, int32(electionMs)]),
  })
  const reader = new AnswerReader(answer, 4)
  const error = reader.int16()
  if (error !== 0) throw new Error(`ElectLeaders failed with ${error}`)
  let elected = 0
  for (let topicsLeft = reader.int32(); topicsLeft > 0; topicsLeft--) {
    reader.skipString()
    for (let left = reader.int32(); left > 0; left--) {
      reader.int32()
      // 84 says that nothing was to be done.
      if (reader.int16() === 0) elected++
      reader.skipString()
    }
  }
  return elected
}
