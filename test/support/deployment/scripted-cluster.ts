// Brokers that speak just enough of Kafka's protocol (ApiVersions, Metadata, Produce) over real sockets, and answer what
// a test tells them: for answers that a real broker gives only in the moment in which a leader moves.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { Cursor } from '../../../src/adapters/kafka/wire/kafka-wire.ts'

export interface ProducedBatch {
  node: number
  topic: string
  partition: number
  keys: (string | null)[]
  values: (string | null)[]
  /** -1 for a producer without an identity. */
  producerId: bigint
  /** Number of the first record. */
  sequence: number
}

/** An error code (0: written), `unnamed`: left out of the answer, `lost`: written, and the connection is cut. */
type Verdict = number | 'unnamed' | 'lost' | 'silent'

export interface ScriptedCluster {
  brokers: string[]
  /** By partition: the leader that metadata name; -1 for none. */
  leaders: number[]
  /** Every batch that came, in order, with what became of it. */
  produced: (ProducedBatch & { verdict: Verdict })[]
  /** What lies in each partition. */
  written(partition: number): string[]
  /** Decides about each batch. Default: written where the node is the leader, else error 6. */
  decide: (batch: ProducedBatch, attempt: number) => Verdict
  /** What a request for an identity is answered; 0 gives one. */
  identityError: number
  /** How many identities were given. */
  identities: number
  /** Answers nothing until `resume`, which then answers it all. */
  pause(): void
  resume(): void
  connections(): number
  close(): Promise<void>
}

const [produce, metadata, apiVersions, initProducerId] = [0, 3, 18, 22]
const [notLeader, outOfOrderSequence] = [6, 45]

/** @param leaders by partition of the one topic `t`: the node id, from 1 */
export async function scriptedCluster(nodes: number, leaders: number[]): Promise<ScriptedCluster> {
  const logs = new Map<number, string[]>()
  /** By partition and producer: the newest batch. */
  const newest = new Map<string, { sequence: number; count: number; offset: number }>()
  /** As a leader does: error code, and offset of the first record. */
  const append = ({
    partition,
    producerId,
    sequence,
    keys,
  }: ProducedBatch): { code: number; offset: number } => {
    const log = logs.get(partition) ?? []
    const producer = `${partition}/${producerId}`
    const before = newest.get(producer)
    if (producerId >= 0n && before !== undefined) {
      if (before.sequence === sequence) return { code: 0, offset: before.offset }
      if (before.sequence + before.count !== sequence) return { code: outOfOrderSequence, offset: -1 }
    }
    newest.set(producer, { sequence, count: keys.length, offset: log.length })
    logs.set(partition, [...log, ...keys.map((one) => one ?? '(none)')])
    return { code: 0, offset: log.length }
  }
  const ports: number[] = []
  const sockets = new Set<Socket>()
  let attempts = 0
  let held: (() => void)[] | null = null
  const cluster: ScriptedCluster = {
    brokers: [],
    leaders,
    produced: [],
    identityError: 0,
    identities: 0,
    written: (partition) => logs.get(partition) ?? [],
    decide: ({ node, partition }) => (cluster.leaders[partition] === node ? 0 : notLeader),
    pause: () => void (held = []),
    resume() {
      const waiting = held ?? []
      held = null
      for (const go of waiting) go()
    },
    connections: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
  const answer = (node: number, request: Buffer, socket: Socket): Buffer | null => {
    const [key, version] = [request.readInt16BE(0), request.readInt16BE(2)]
    const body = 10 + Math.max(0, request.readInt16BE(8))
    if (key === apiVersions) return apiVersionsAnswer(version)
    if (key === metadata) return metadataAnswer(ports, cluster.leaders, version)
    if (key === initProducerId) {
      const { identityError } = cluster
      if (identityError === 0) cluster.identities++
      const id = identityError === 0 ? 1_000 + cluster.identities : -1
      return Buffer.concat([int32(0), int16(identityError), int64(id), int16(0)])
    }
    if (key !== produce) throw new Error(`request ${key} is not expected`)
    const batches = batchesOf(request, body, node)
    const answered: Answered[] = []
    for (const batch of batches) {
      const verdict = cluster.decide(batch, attempts++)
      cluster.produced.push({ ...batch, verdict })
      const appended = verdict === 0 || verdict === 'lost' ? append(batch) : null
      if (verdict === 'lost') return (socket.destroy(), null)
      if (verdict === 'silent') return null
      if (verdict === 'unnamed') continue
      answered.push({ batch, ...(appended ?? { code: verdict as number, offset: -1 }) })
    }
    return produceAnswer(answered)
  }
  const servers: Server[] = Array.from({ length: nodes }, (_, index) =>
    createServer((socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket)).on('error', () => {})
      let buffered = Buffer.alloc(0)
      const read = () => {
        while (buffered.length >= 4 && buffered.length >= 4 + buffered.readInt32BE(0)) {
          const request = buffered.subarray(4, 4 + buffered.readInt32BE(0))
          buffered = buffered.subarray(4 + request.length)
          const body = answer(index + 1, request, socket)
          if (body === null) return
          socket.write(Buffer.concat([int32(body.length + 4), request.subarray(4, 8), body]))
        }
      }
      socket.on('data', (chunk) => {
        buffered = Buffer.concat([buffered, chunk])
        if (held === null) read()
        else held.push(read)
      })
    }),
  )
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    ports.push(port)
    cluster.brokers.push(`127.0.0.1:${port}`)
  }
  return cluster
}

function batchesOf(request: Buffer, body: number, node: number): ProducedBatch[] {
  const found: ProducedBatch[] = []
  // No transaction, acks, timeout.
  let at = body + 2 + 2 + 4
  const topics = request.readInt32BE(at)
  at += 4
  for (let t = 0; t < topics; t++) {
    const nameBytes = request.readInt16BE(at)
    const topic = request.toString('utf8', at + 2, at + 2 + nameBytes)
    at += 2 + nameBytes
    const partitions = request.readInt32BE(at)
    at += 4
    for (let p = 0; p < partitions; p++) {
      const partition = request.readInt32BE(at)
      const bytes = request.readInt32BE(at + 4)
      found.push({
        ...{ node, topic, partition },
        ...recordsOf(request, at + 8),
        producerId: request.readBigInt64BE(at + 8 + 43),
        sequence: request.readInt32BE(at + 8 + 53),
      })
      at += 8 + bytes
    }
  }
  return found
}

function recordsOf(request: Buffer, batch: number): Pick<ProducedBatch, 'keys' | 'values'> {
  const [keys, values]: [(string | null)[], (string | null)[]] = [[], []]
  const cursor = new Cursor(request, batch + 61)
  for (let count = request.readInt32BE(batch + 57); count > 0; count--) {
    const bytes = cursor.varint()
    const end = cursor.at + bytes
    cursor.at += 2 // attributes, timestamp delta
    cursor.varint() // offset delta
    keys.push(cursor.bytes()?.toString() ?? null)
    values.push(cursor.bytes()?.toString() ?? null)
    cursor.at = end
  }
  return { keys, values }
}

const int16 = (value: number): Buffer => {
  const buffer = Buffer.alloc(2)
  buffer.writeInt16BE(value)
  return buffer
}
const int32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}
const int64 = (value: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(BigInt(value))
  return buffer
}
const text = (value: string): Buffer => Buffer.concat([int16(value.length), Buffer.from(value)])
const list = (items: Buffer[]): Buffer => Buffer.concat([int32(items.length), ...items])

function apiVersionsAnswer(version: number): Buffer {
  const known = [
    [produce, 3, 7],
    [metadata, 0, 5],
    [apiVersions, 0, 2],
    [initProducerId, 0, 1],
  ].map((one) => Buffer.concat(one.map((value) => int16(value))))
  return Buffer.concat([int16(0), list(known), ...(version > 0 ? [int32(0)] : [])])
}

function metadataAnswer(ports: readonly number[], leaders: readonly number[], version: number): Buffer {
  if (version !== 5) throw new Error(`metadata version ${version} is not expected`)
  const brokers = ports.map((port, index) =>
    Buffer.concat([int32(index + 1), text('127.0.0.1'), int32(port), int16(-1)]),
  )
  const partitions = leaders.map((leader, partition) =>
    Buffer.concat([int16(leader < 0 ? 5 : 0), int32(partition), int32(leader), list([]), list([]), list([])]),
  )
  const topic = Buffer.concat([int16(0), text('t'), Buffer.of(0), list(partitions)])
  return Buffer.concat([int32(0), list(brokers), int16(-1), int32(1), list([topic])])
}

interface Answered {
  batch: ProducedBatch
  code: number
  offset: number
}

function produceAnswer(answered: readonly Answered[]): Buffer {
  const partitions = answered.map(({ batch: { partition }, code, offset }) =>
    Buffer.concat([int32(partition), int16(code), int64(offset), int64(1_000 + offset), int64(0)]),
  )
  return Buffer.concat([list([Buffer.concat([text('t'), list(partitions)])]), int32(0)])
}
