// The life of an OAuth2 token: when it is asked for, and what requests do meanwhile. Times are in ms by any clock that never
// goes back.
import { stateAfter, type Transitions } from '../transitions.ts'

/**
 * | phase | when | requests |
 * |---|---|---|
 * | none | nobody has asked for one, or it ended unused | wait |
 * | fetching | it is asked for, and there is none to use | wait |
 * | valid | there is one | go |
 * | renewing | there is one, and the next one is asked for | go |
 * | waning | there is one; the next one could not be had, and is asked for again later | go |
 * | failing | there is none; it could not be had, and is asked for again later | are deferred |
 * | retrying | there is none; it is asked for again | are deferred |
 */
export type TokenPhase = 'none' | 'fetching' | 'valid' | 'renewing' | 'waning' | 'failing' | 'retrying'

/** `due`: the time has come to ask for the next one. `lapsed`: it has ended. `refused`: the receiver does not take it. */
export type TokenLifeEvent = 'wanted' | 'due' | 'got' | 'failed' | 'lapsed' | 'refused'

/** What is missing must not happen. */
export const tokenTransitions: Transitions<TokenPhase, TokenLifeEvent> = {
  none: { wanted: 'fetching' },
  fetching: { got: 'valid', failed: 'failing' },
  valid: { due: 'renewing', lapsed: 'none', refused: 'fetching' },
  // What is asked for already is newer than the one that is refused.
  renewing: { got: 'valid', failed: 'waning', lapsed: 'fetching', refused: 'fetching' },
  waning: { due: 'renewing', lapsed: 'failing', refused: 'fetching' },
  failing: { due: 'retrying' },
  retrying: { got: 'valid', failed: 'failing' },
}

/** What requests do in a phase, and whether an answer of the token endpoint is awaited in it. */
export const tokenPhases: Readonly<
  Record<TokenPhase, { requests: 'wait' | 'go' | 'deferred'; isAsked: boolean }>
> = {
  none: { requests: 'wait', isAsked: false },
  fetching: { requests: 'wait', isAsked: true },
  valid: { requests: 'go', isAsked: false },
  renewing: { requests: 'go', isAsked: true },
  waning: { requests: 'go', isAsked: false },
  failing: { requests: 'deferred', isAsked: false },
  retrying: { requests: 'deferred', isAsked: true },
}

export interface TokenLife {
  readonly phase: TokenPhase
  /** Null in phases without one. */
  readonly token: string | null
  readonly expiresAt: number
  /** When the next one is to be asked for; Infinity while it is, or while nothing calls for it. */
  readonly dueAt: number
  /** Failures in a row. */
  readonly failures: number
  /** Why the last one could not be had, in one line for people; null after one that was. */
  readonly problem: string | null
  /**
   * It was refused in a request that had it in place of another refused one: a third would be refused as well, until one
   * is due. A token that replaced a refused one and was not used since may have been revoked meanwhile: its first refusal
   * says nothing of the receiver.
   */
  readonly isDoubted: boolean
}

export const noToken: TokenLife = {
  phase: 'none',
  token: null,
  expiresAt: 0,
  dueAt: Infinity,
  failures: 0,
  problem: null,
  isDoubted: false,
}

/** Of a token's life, what has passed when the next one is asked for. */
export const renewedAfter = 0.75
/** Where an answer does not say how long its token lives. */
export const unknownLifetimeMs = 5 * 60_000
/** Of longer ones the end is never seen: a token is renewed every day at least. */
const maxLifetimeMs = 24 * 3_600_000
const [initialRetryMs, maxRetryMs] = [1_000, 60_000]
/** More than any endpoint may ask for. */
const maxAskedMs = 5 * 60_000

/** The life after an event without more to it. */
export function tokenAfter(life: TokenLife, event: Exclude<TokenLifeEvent, 'got' | 'failed'>): TokenLife {
  const phase = stateAfter(tokenTransitions, life.phase, event)
  return {
    ...life,
    phase,
    token: tokenPhases[phase].requests === 'go' ? life.token : null,
    dueAt: phase === 'failing' ? life.dueAt : Infinity,
    isDoubted: false,
  }
}

/**
 * @param askedAt when it was asked for: its life cannot have begun earlier
 * @param lifetimeMs null where the answer does not say it
 */
export function tokenGot(
  life: TokenLife,
  token: string,
  askedAt: number,
  lifetimeMs: number | null,
): TokenLife {
  const lives = Math.min(lifetimeMs ?? unknownLifetimeMs, maxLifetimeMs)
  return {
    phase: stateAfter(tokenTransitions, life.phase, 'got'),
    token,
    expiresAt: askedAt + lives,
    dueAt: askedAt + lives * renewedAfter,
    failures: 0,
    problem: null,
    isDoubted: false,
  }
}

/**
 * @param askedMs the wait that the endpoint asked for; 0 for none
 * @param chance from 0 to 1, so that those that failed together do not ask together again
 */
export function tokenFailed(
  life: TokenLife,
  problem: string,
  now: number,
  askedMs: number,
  chance: number,
): TokenLife {
  const failures = life.failures + 1
  return {
    ...life,
    phase: stateAfter(tokenTransitions, life.phase, 'failed'),
    dueAt: now + Math.max(Math.min(askedMs, maxAskedMs), retryMs(failures, chance)),
    failures,
    problem,
  }
}

/** Doubles, up to a minute; of that, from half on. */
export const retryMs = (failures: number, chance: number): number =>
  Math.min(initialRetryMs * 2 ** (failures - 1), maxRetryMs) * (0.5 + chance / 2)

/** Something other than a refusal came back for it. */
export const tokenProven = (life: TokenLife): TokenLife =>
  life.isDoubted ? { ...life, isDoubted: false } : life

/** It was refused in a request that had it in place of another refused one. */
export const tokenDoubted = (life: TokenLife): TokenLife => ({ ...life, isDoubted: true })
