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
/** A length below 127, one more than it is. */
const compactString = (text: string) => Buffer.concat([Buffer.from([text.length + 1]), Buffer.from(text)])
const oneOf = (item: Buffer) => Buffer.concat([Buffer.from([2]), item])

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
  const topic = Buffer.concat([name, oneOf(Buffer.concat([int32(0), noTags])), noTags])
  // DescribeQuorum 0.
  const request = { apiKey: 55, version: 0, isFlexible: true }
  const answer = await ask(broker, { ...request, body: Buffer.concat([oneOf(topic), noTags]) })
  // The answer's own error, one topic with its name, one partition with its number and error, then the leader.
  const atError = 2 + 1 + name.length + 1 + 4
  const error = answer.readInt16BE(0) || answer.readInt16BE(atError)
  if (error !== 0) throw new Error(`DescribeQuorum failed with ${error}`)
  const leader = answer.readInt32BE(atError + 2)
  return leader < 0 ? null : leader
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
    const length = this.int16()
    this.#at += Math.max(0, length)
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
