import { stateAfter, type Transitions } from '../../../core/transitions.ts'

/**
 * A member of a consumer group. `groupTransitions` says what leads from one state to another:
 *
 * - `connecting`: no consumer has joined yet, or it broke off and the next one is being made. Nothing is owned.
 * - `member`: what was assigned is owned.
 * - `rejoining`: between one generation and the next. Nothing starts; what is finished is committed.
 * - `stopped`: final.
 */
export type GroupState = 'connecting' | 'member' | 'rejoining' | 'stopped'
/** `join_ended`: the consumer has joined, or could not and tries again. */
export type GroupEvent = 'joined' | 'rejoins' | 'join_ended' | 'broke_off' | 'stopped'

export const groupTransitions: Transitions<GroupState, GroupEvent> = {
  connecting: { joined: 'member', join_ended: 'connecting', broke_off: 'connecting', stopped: 'stopped' },
  member: {
    joined: 'member',
    rejoins: 'rejoining',
    join_ended: 'member',
    broke_off: 'connecting',
    stopped: 'stopped',
  },
  rejoining: {
    joined: 'member',
    rejoins: 'rejoining',
    join_ended: 'member',
    broke_off: 'connecting',
    stopped: 'stopped',
  },
  stopped: { stopped: 'stopped' },
}

/** How long a member that has joined and fetched nothing may still be refused, in ms: the first fetch says it at once. */
const doubtMs = 5_000
/** Commits that are refused for this share of `maxStallMs` (15 s) are reported by readiness: a coordinator moves in less. */
const longRefusedShare = 1 / 6

export interface MembershipLimits {
  sessionTimeoutMs: number
  /** A consumer that has been no member, or could not commit, for that long is given up. */
  maxStallMs: number
}

/** What is known of the membership of one process, by the signs that the broker gives. Times are monotonic, in ms. */
export class GroupMembership {
  readonly #limits: MembershipLimits
  readonly #now: () => number
  #state: GroupState = 'connecting'
  /** When the broker's last sign that we are a member was asked for. */
  #lastHeartbeat = -Infinity
  #askedAt = -Infinity
  /** Since when commits are refused; null while they are taken. */
  #refusedSince: number | null = null
  /** When the consumer joined that has fetched nothing yet; null once it has. */
  #unprovenSince: number | null = null

  constructor(limits: MembershipLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  get state(): GroupState {
    return this.#state
  }

  /** Partitions are owned: they can be committed. */
  get isMember(): boolean {
    return this.#state === 'member' || this.#state === 'rejoining'
  }

  get isFresh(): boolean {
    return this.#now() - this.#lastHeartbeat < (this.#limits.sessionTimeoutMs * 2) / 3
  }

  get mayStart(): boolean {
    return this.#state !== 'rejoining' && this.isFresh
  }

  /** Joined so short a time ago that the brokers may still refuse what it needs. */
  get isDoubtful(): boolean {
    return this.#unprovenSince !== null && this.#now() - this.#unprovenSince < doubtMs
  }

  /** Null unless commits have been refused for long. */
  get refusedProblem(): string | null {
    const refusedMs = this.#now() - (this.#refusedSince ?? Infinity)
    const isLong = refusedMs >= this.#limits.maxStallMs * longRefusedShare
    return isLong ? `Kafka has refused commits for ${Math.round(refusedMs / 1_000)} s` : null
  }

  /** Why the consumer that began at `began` is to be given up; null while it is not. */
  stalledSince(began: number): string | null {
    const { maxStallMs } = this.#limits
    const now = this.#now()
    const seconds = Math.round(maxStallMs / 1_000)
    if (now - Math.max(began, this.#refusedSince ?? now) >= maxStallMs)
      return `its commits have been refused for ${seconds} s`
    if (now - Math.max(began, this.#lastHeartbeat) >= maxStallMs)
      return `it has been no member of its group for ${seconds} s`
    return null
  }

  /** A request that only a member gets an answer to went out that many ms ago. */
  asked(agoMs: number): void {
    this.#askedAt = this.#now() - agoMs
  }

  /**
   * The last of them was answered. The answer may have lain here while this process was frozen: what it says was true
   * when it was asked for.
   */
  answered(): void {
    this.#lastHeartbeat = this.#askedAt
  }

  /** @param isContinued under the member id of before */
  joined(isContinued: boolean): void {
    this.#to('joined')
    this.#refusedSince = null
    if (!isContinued) this.#unprovenSince = this.#now()
    this.answered()
  }

  rejoins(): void {
    this.#to('rejoins')
  }

  joinEnded(): void {
    this.#to('join_ended')
  }

  /** A fetch was answered. */
  fetched(): void {
    this.#unprovenSince = null
  }

  committed(isAcknowledged: boolean): void {
    if (isAcknowledged) this.#refusedSince = null
    else this.#refusedSince ??= this.#now()
  }

  brokeOff(): void {
    this.#to('broke_off')
    this.#lastHeartbeat = -Infinity
    this.#refusedSince = null
  }

  stopped(): void {
    this.#to('stopped')
  }

  #to(event: GroupEvent): void {
    this.#state = stateAfter(groupTransitions, this.#state, event)
  }
}
