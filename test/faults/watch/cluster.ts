import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LocalKafkaNode } from '../../../src/local/kafka-node.ts'
import { startLocalKafka, type LocalKafka } from '../../../src/local/kafka.ts'
import type { LocalParts } from '../../../src/local/parts.ts'
import { freePort } from '../../../src/local/ports.ts'
import { mountDisk, type Disk } from '../kinds/disk.ts'
import { startTcpProxy, type TcpProxy } from '../kinds/tcp-proxy.ts'

/** One broker, the network between it and Postrider, and its disk. */
export interface BrokerSeat {
  id: number
  name: string
  node: LocalKafkaNode
  proxy: TcpProxy
  /** Null where none can be mounted. */
  disk: Disk | null
  frozen: boolean
}

/** What was done to a broker or to the way to it. Times are epoch ms; `to` is Infinity while it goes on. */
export interface Disturbance {
  broker: number
  what: string
  from: number
  to: number
}

/** Beyond the 5 s within which a broker hands its partitions over; then it is killed. */
const stopDeadlineMs = 30_000

/**
 * One broker or three, each with two ways in: a direct one for the runner and for the other brokers, and one whose
 * address, which every client is told, is the proxy's.
 */
export class Cluster {
  readonly seats: readonly BrokerSeat[]
  /** In the order of `from`. */
  readonly disturbances: Disturbance[] = []
  /** Null where each broker has a disk that can be made full. */
  readonly diskProblem: string | null
  readonly #folder: string
  readonly #kafka: LocalKafka

  private constructor(folder: string, kafka: LocalKafka, seats: BrokerSeat[], diskProblem: string | null) {
    this.#folder = folder
    this.#kafka = kafka
    this.seats = seats
    this.diskProblem = diskProblem
  }

  static async start(
    folder: string,
    { parts, brokers, withDisk }: { parts: LocalParts; brokers: 1 | 3; withDisk: boolean },
  ): Promise<Cluster> {
    const dataDir = join(folder, 'kafka')
    const ids = Array.from({ length: brokers }, (_, index) => index + 1)
    const disks: Disk[] = []
    const proxies: TcpProxy[] = []
    let diskProblem = withDisk ? null : 'none was asked for'
    try {
      for (const id of ids) {
        if (diskProblem !== null) break
        const mounted = await mountDisk(brokers === 1 ? dataDir : join(dataDir, `node-${id}`))
        if ('impossible' in mounted) diskProblem = mounted.impossible
        else disks.push(mounted)
      }
      const proxied: number[] = []
      for (const _ of ids) {
        const port = await freePort(proxied)
        proxied.push(port)
        proxies.push(await startTcpProxy(port))
      }
      const kafka = await startLocalKafka({
        ...{ parts, dataDir, nodes: brokers },
        properties: { 'group.min.session.timeout.ms': 1_000 },
        nodeProperties: ({ id, port, controllerPort }) => ({
          listeners: `PLAINTEXT://127.0.0.1:${port},PROXIED://127.0.0.1:${proxied[id - 1]},CONTROLLER://127.0.0.1:${controllerPort}`,
          'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},PROXIED://127.0.0.1:${proxies[id - 1]!.port}`,
          'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT',
          'inter.broker.listener.name': 'PLAINTEXT',
        }),
      })
      const seats = kafka.nodes.map((node, index) => ({
        ...{ id: node.id, name: `broker ${node.id}`, node, frozen: false },
        ...{ proxy: proxies[index]!, disk: disks[index] ?? null },
      }))
      return new Cluster(folder, kafka, seats, diskProblem)
    } catch (error) {
      await Promise.all(proxies.map((proxy) => proxy.close()))
      for (const disk of disks) await disk.unmount()
      throw error
    }
  }

  /** Past the proxies. */
  get brokers(): string[] {
    return this.seats.map(({ node }) => node.broker)
  }

  get proxied(): string[] {
    return this.seats.map(({ proxy }) => `127.0.0.1:${proxy.port}`)
  }

  get running(): BrokerSeat[] {
    return this.seats.filter(({ node, frozen }) => node.isRunning() && !frozen)
  }

  seat(id: number): BrokerSeat {
    return this.seats.find((seat) => seat.id === id)!
  }

  /** SIGTERM, as in any restart: its partitions get other leaders first. */
  async stop(seat: BrokerSeat): Promise<void> {
    await this.during(seat, 'stopped', () => seat.node.stop(stopDeadlineMs))
  }

  async kill(seat: BrokerSeat): Promise<void> {
    this.thaw(seat)
    await this.during(seat, 'killed', () => seat.node.kill())
  }

  /** What it was told and did not answer yet is answered by nobody until `thaw`. */
  freeze(seat: BrokerSeat): () => void {
    const end = this.begin(seat, 'frozen')
    seat.frozen = true
    seat.node.freeze()
    return () => {
      this.thaw(seat)
      end()
    }
  }

  thaw(seat: BrokerSeat): void {
    if (seat.frozen) seat.node.thaw()
    seat.frozen = false
  }

  async start(seat: BrokerSeat): Promise<void> {
    if (seat.node.isRunning()) return
    await this.#keepLog(seat)
    await this.during(seat, 'started', () => seat.node.start())
  }

  /** Starts those that do not run, together: two of three are needed for any of them to get ready. */
  async startAll(): Promise<void> {
    await Promise.all(this.seats.map((seat) => this.start(seat)))
  }

  /** Notes a disturbance, until what it returns is called. */
  begin({ id }: BrokerSeat, what: string): () => void {
    const disturbance: Disturbance = { broker: id, what, from: Date.now(), to: Infinity }
    this.disturbances.push(disturbance)
    return () => void (disturbance.to = Date.now())
  }

  async during<T>(seat: BrokerSeat, what: string, work: () => Promise<T>): Promise<T> {
    const end = this.begin(seat, what)
    try {
      return await work()
    } finally {
      end()
    }
  }

  /** Each start truncates a broker's log, and its folder is deleted: what it said is wanted where a run failed. */
  async #keepLog({ id, node }: BrokerSeat): Promise<void> {
    const text = await readFile(node.logFile).catch(() => '')
    await appendFile(join(this.#folder, `kafka-${id}.log`), text)
  }

  async close(): Promise<void> {
    for (const seat of this.seats) this.thaw(seat)
    await Promise.all([this.#kafka.kill(), ...this.seats.map(({ proxy }) => proxy.close())])
    for (const seat of this.seats) await this.#keepLog(seat)
    for (const { disk } of this.seats) await disk?.unmount()
  }
}
