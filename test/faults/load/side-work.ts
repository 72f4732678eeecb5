// What a deployment does beside its calls: audiences, deletions, changed settings, pauses, replays. Whatever
// the console acknowledged is noted here, and held against what lies in Kafka at the end (side-verdict.ts).
import { setTimeout as delay } from 'node:timers/promises'
import { sideSource } from './destinations.ts'
import type { Findings } from '../evidence/findings.ts'
import type { Random } from '../random.ts'
import { SideClient } from './side-client.ts'
import { SideHolds, type Acknowledged, type HoldNotes } from './side-holds.ts'

export const audienceId = 'seen'
/** Refuses everything until it is fixed, just before its dead letters are replayed. */
export const fixedDestination = 'side-fixed'
const renamed = 'side-healthy'

export interface SideNotes {
  /** Calls that the collector took: user ids by messageId. */
  calls: Map<string, string>
  /** Who came and who went since the sync before. */
  syncs: (Acknowledged & { changes: ReadonlyMap<string, boolean> })[]
  /** By the last sync. */
  members: ReadonlySet<string>
  deletions: (Acknowledged & { id: string; userIds: readonly string[]; deleteCalls: number })[]
  names: (Acknowledged & { name: string })[]
  /** Of dead letters. */
  replay: (Acknowledged & { replayed: number; refused: number }) | null
  holds: HoldNotes
}

const audienceSize = 300
const changesOfSync = 40
const callsOfBatch = 20
/** Users after the next one to be deleted that have calls. */
const usersAhead = 10
/** In each round. */
const turnChance = 0.4

export class SideWork {
  readonly notes: SideNotes
  readonly client: SideClient
  readonly #holds: SideHolds
  readonly #collectorUrl: string
  readonly #consoleUrl: string
  readonly #token: string
  readonly #random: Random
  #stopped = false
  #running: Promise<void> = Promise.resolve()
  #calls = 0
  #nextDeleted = 0

  constructor(given: {
    collectorUrl: string
    consoleUrl: string
    token: string
    random: Random
    findings: Findings
  }) {
    this.#collectorUrl = given.collectorUrl
    this.#consoleUrl = given.consoleUrl
    this.#token = given.token
    this.#random = given.random
    this.client = new SideClient(given.findings)
    this.#holds = new SideHolds({ client: this.client, ...given })
    this.notes = {
      ...{ calls: new Map(), syncs: [], members: new Set(), deletions: [], names: [], replay: null },
      holds: this.#holds.notes,
    }
  }

  async start(): Promise<void> {
    const audience = { id: audienceId, name: 'Seen', sourceId: sideSource }
    await this.#ask('create the audience', 'POST', '/audiences', audience)
    this.#running = this.#run()
  }

  /** Resolves once what was begun is acknowledged, and all replays have ended; false when it is not within `withinMs`. */
  async stop(withinMs: number): Promise<boolean> {
    this.#stopped = true
    const late = new AbortController()
    const isLate = delay(withinMs, 'late', { signal: late.signal }).catch(() => 'in time')
    const ended = this.#running.then(() => this.#holds.end())
    const inTime = (await Promise.race([ended, isLate])) !== 'late'
    late.abort()
    this.client.stop()
    await ended
    return inTime
  }

  /** All dead letters of the destination that is fixed by now; and what another one has had. False when it lasts longer. */
  async replay(withinMs: number): Promise<boolean> {
    const deadline = Date.now() + withinMs
    await this.#holds.sendAgain()
    const from = Date.now()
    const deadLetters = { destination: [fixedDestination] }
    const headers = { 'idempotency-key': 'dead-letters' }
    let replay = (await this.#ask('replay dead letters', 'POST', '/replays', { deadLetters }, headers)) as {
      id: string
      state: string
      sent: number
      totals: { refused: number }
    } | null
    while (replay?.state === 'running') {
      if (Date.now() > deadline) return false
      await delay(1_000)
      replay = (await this.#ask('the replay', 'GET', `/replays/${replay.id}`)) as typeof replay
    }
    if (!replay) return true
    const { sent, totals } = replay
    this.notes.replay = { from, to: Date.now(), replayed: sent, refused: totals.refused }
    return true
  }

  async #run(): Promise<void> {
    for (let round = 0; !this.#stopped; round++) {
      await this.#sendCalls()
      const work = [() => this.#sync(), () => this.#delete(), () => this.#rename()]
      await work[round % work.length]!()
      if (this.#random.chance(turnChance)) await this.#holds.turn()
      for (let left = this.#random.between(20, 60); left > 0 && !this.#stopped; left--) await delay(100)
    }
  }

  async #sendCalls(): Promise<void> {
    const batch = Array.from({ length: callsOfBatch }, () => ({
      ...{ type: 'track', event: 'Side Work', messageId: `s${this.#calls++}` },
      userId: `s-${this.#nextDeleted + this.#random.between(0, usersAhead)}`,
      timestamp: new Date().toISOString(),
    }))
    const answer = await this.client.send('calls', {
      url: `${this.#collectorUrl}/v1/batch`,
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`key-of-${sideSource}:`)}` },
      body: JSON.stringify({ batch }),
    })
    if (answer) for (const { messageId, userId } of batch) this.notes.calls.set(messageId, userId)
  }

  async #sync(): Promise<void> {
    const { notes } = this
    const members = new Set(notes.members)
    const changes = new Map<string, boolean>()
    while (changes.size < changesOfSync) changes.set(`a-${this.#random.between(1, audienceSize)}`, false)
    for (const user of changes.keys()) {
      const joins = !members.has(user)
      changes.set(user, joins)
      if (joins) members.add(user)
      else members.delete(user)
    }
    const from = Date.now()
    const answer = await this.client.send('a sync', {
      url: `${this.#consoleUrl}/api/v1/audiences/${audienceId}/sync?allowEmpty=true`,
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'text/plain' },
      body: [...members].join('\n'),
    })
    if (!answer) return
    notes.syncs.push({ from, to: Date.now(), changes })
    notes.members = members
  }

  async #delete(): Promise<void> {
    const userIds = [`s-${this.#nextDeleted}`, `s-${this.#nextDeleted + 1}`]
    this.#nextDeleted += userIds.length
    const from = Date.now()
    const body = { userIds, sourceIds: [sideSource] }
    const headers = { 'idempotency-key': `deletion-${userIds.join()}` }
    const answer = (await this.#ask('a deletion', 'POST', '/deletions', body, headers)) as {
      id: string
      deleteCalls: number
    } | null
    if (answer)
      this.notes.deletions.push({
        from,
        to: Date.now(),
        id: answer.id,
        userIds,
        deleteCalls: answer.deleteCalls,
      })
  }

  async #rename(): Promise<void> {
    const name = `${renamed} ${this.notes.names.length}`
    const from = Date.now()
    const answer = await this.#ask('a change', 'PATCH', `/destinations/${renamed}`, { name })
    if (answer) this.notes.names.push({ from, to: Date.now(), name })
  }

  #ask(
    what: string,
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    json?: object,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    return this.client.send(what, {
      ...{ url: `${this.#consoleUrl}/api/v1${path}`, method },
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(json && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json && { body: JSON.stringify(json) }),
    })
  }
}
