import { Resolver, lookup as systemLookup, NODATA, NOTFOUND, type LookupAddress } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { isIP, type LookupFunction } from 'node:net'

type Callback = (error: Error | null, addresses: LookupAddress[]) => void

interface Search {
  host: string
  callback: Callback
}

/** The queries of a `dns.Resolver` that are used here. */
export type DnsQueries = Pick<Resolver, 'resolve4' | 'resolve6'>

export interface NameLookupOptions {
  /** Number of look-ups that the system does at a time; default a quarter of libuv's threads. */
  slots?: number
  /** The system's look-up; default dns.lookup. */
  system?: LookupFunction
  /** Asked while no slot is left; default a resolver with the system's servers. */
  dns?: () => DnsQueries
  hostsFile?: string
}

/** After that, in ms, a look-up counts as stuck. */
const stuckMs = 500

/**
 * Half of libuv's threads do look-ups at most. Webhooks get half of these: brokers and the registry have names too.
 */
const defaultSlots = (): number => Math.max(1, Math.floor(Number(process.env.UV_THREADPOOL_SIZE ?? 4) / 4))

/** One look-up asks two servers twice at most, and is over within the time of an attempt. */
const dnsOptions = { timeout: 1_000, tries: 2 }

/**
 * Looks names up as everything else on the machine does, by the system: its hosts file, its search domains, whatever it is
 * configured to ask (nsswitch). But such a look-up holds a thread, and nothing can end it: for a name whose servers are
 * silent, that takes ten seconds and more. So the system does a few at a time, and while all of these are stuck, other
 * names are looked up in the hosts file and by DNS itself (c-ares), which takes no thread. A name that DNS does not know,
 * as it may be with one to which a search domain belongs, waits for the system.
 */
export class NameLookup {
  readonly #slots: number
  readonly #system: LookupFunction
  readonly #makeDns: () => DnsQueries
  readonly #hostsFile: string
  readonly #waiting: Search[] = []
  /** DNS was asked already, and does not know the name. */
  readonly #unknownToDns: Search[] = []
  #running = 0
  #stuck = 0
  /** Made when it is needed, so that it has the servers that the system has now. */
  #dns: DnsQueries | null = null
  #asking = 0

  constructor(options: NameLookupOptions = {}) {
    this.#slots = options.slots ?? defaultSlots()
    this.#system = options.system ?? systemLookup
    this.#makeDns = options.dns ?? (() => new Resolver(dnsOptions))
    this.#hostsFile = options.hostsFile ?? '/etc/hosts'
  }

  /** Calls back with all addresses of the name, or with an error. */
  find(host: string, callback: Callback): void {
    this.#waiting.push({ host, callback })
    this.#pump()
  }

  #pump(): void {
    while (this.#running < this.#slots) {
      const search = this.#unknownToDns.shift() ?? this.#waiting.shift()
      if (search === undefined) return
      this.#askSystem(search)
    }
    if (this.#stuck === this.#slots) for (const search of this.#waiting.splice(0)) void this.#askDns(search)
  }

  #askSystem({ host, callback }: Search): void {
    this.#running++
    let isStuck = false
    const timer = setTimeout(() => {
      isStuck = true
      this.#stuck++
      this.#pump()
    }, stuckMs).unref()
    this.#system(host, { all: true, family: 0 }, (error, answer) => {
      clearTimeout(timer)
      this.#running--
      if (isStuck) this.#stuck--
      this.#pump()
      if (error) return callback(error, [])
      const all = Array.isArray(answer) ? answer : [{ address: answer, family: isIP(answer) }]
      callback(
        null,
        all.filter(({ address }) => typeof address === 'string' && address !== ''),
      )
    })
  }

  async #askDns(search: Search): Promise<void> {
    this.#asking++
    const { addresses, error } = await this.#found(search.host)
    if (--this.#asking === 0) this.#dns = null
    if (addresses.length === 0 && error === null) {
      this.#unknownToDns.push(search)
      this.#pump()
    } else search.callback(addresses.length > 0 ? null : error, addresses)
  }

  /** Neither addresses nor an error: there is no such name. */
  async #found(host: string): Promise<{ addresses: LookupAddress[]; error: Error | null }> {
    const addresses = addressesIn(await readFile(this.#hostsFile, 'utf8').catch(() => ''), host)
    if (addresses.length > 0) return { addresses, error: null }
    this.#dns ??= this.#makeDns()
    const dns = this.#dns
    const answers = await Promise.all([
      new Promise<Answer>((resolve) => dns.resolve4(host, (error, found) => resolve({ error, found }))),
      new Promise<Answer>((resolve) => dns.resolve6(host, (error, found) => resolve({ error, found }))),
    ])
    const error = answers.find((answer) => answer.error && !isUnknown(answer.error))?.error ?? null
    return { addresses: answers.flatMap(({ error, found }) => (error ? [] : found.map(addressOf))), error }
  }
}

interface Answer {
  error: NodeJS.ErrnoException | null
  found: string[]
}

const isUnknown = ({ code }: NodeJS.ErrnoException): boolean => code === NOTFOUND || code === NODATA

const addressOf = (address: string): LookupAddress => ({ address, family: isIP(address) })

/** Of a name in the text of a hosts file (hosts(5)). */
function addressesIn(text: string, host: string): LookupAddress[] {
  const name = host.toLowerCase().replace(/\.$/, '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const isFound = isIP(address) !== 0 && names.some((each) => each.toLowerCase() === name)
    return isFound ? [addressOf(address)] : []
  })
}
