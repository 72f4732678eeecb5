import { z } from 'zod'
import { accepted, refused, idFaults, faultIf, type Fault } from '../decision.ts'
import type { TokenCommand } from '../settings/commands.ts'
import type { Decision } from '../settings/events.ts'
import type { SettingsAggregate } from '../settings/settings.ts'
import { reachFault, type Reach } from './reach.ts'
import { roles, type Role } from './roles.ts'

/** A token of the admin API, as the settings log keeps it. The token itself is nowhere. */
export interface AccessToken {
  /** Its name, which is the actor of what is done with it. Never reused, so that the history stays clear. */
  id: string
  role: Role
  /** The sources and destinations that it is for. */
  only: Reach
  /**
   * SHA-256 of the token, base64url. A plain hash is enough here, unlike for a password: a token is 32 random bytes, and
   * nobody can try 2^256 of them, however fast the hash is. A slow hash would only make each request slow. That
   * of a limited token covers its limits: who edits them in the log ends it, and a version that knows of no limits takes
   * no such token.
   */
  hash: string
  /** Epoch milliseconds. */
  createdAt: number
  /** Null while it works. */
  revokedAt: number | null
}

export type AccessTokens = ReadonlyMap<string, AccessToken>

const head = { id: z.string(), at: z.number().int() }

/** What can have happened to one; `at` is in epoch milliseconds. */
export const tokenEvents = [
  z.object({
    type: z.literal('token_created'),
    role: z.enum(roles),
    hash: z.string(),
    only: z.array(z.string()).nullable().default(null),
    ...head,
  }),
  z.object({ type: z.literal('token_revoked'), ...head }),
] as const
export type TokenEvent = z.output<(typeof tokenEvents)[number]>

/** The token that the event is about, after it. Throws for what no writer of ours can have written. */
export function tokenAfter(all: AccessTokens, event: TokenEvent): AccessToken {
  const { id, at } = event
  if (event.type === 'token_created') {
    const { role, hash, only } = event
    return { id, role, only, hash, createdAt: at, revokedAt: null }
  }
  const found = all.get(id)
  if (!found) throw new Error(`${event.type} names token "${id}", which does not exist`)
  return { ...found, revokedAt: at }
}

/** That work at the same time: each request is compared with all of them. */
export const maxTokens = 100

export function decideToken(command: TokenCommand, { tokens }: SettingsAggregate): Decision {
  const { id, at } = command
  const found = tokens.get(id)
  if (command.type === 'revoke_token') {
    if (!found) return refused('not_found', 'id', `token ${JSON.stringify(id)} does not exist`)
    return accepted(found.revokedAt === null ? { type: 'token_revoked', id, at } : null)
  }
  const { role, hash, only } = command
  const working = [...tokens.values()].filter(({ revokedAt }) => revokedAt === null)
  const faults = [
    ...idFaults(id),
    ...faultIf(
      found !== undefined,
      'conflict',
      'id',
      `token "${id}" exists already or did once, and names are never reused`,
    ),
    ...faultIf(!roles.includes(role), 'usage', 'role', `the role must be one of ${roles.join(', ')}`),
    ...(only === null ? [] : limitFaults(only, role)),
    ...faultIf(
      working.length >= maxTokens,
      'conflict',
      'id',
      `there are ${working.length} tokens, the most that are allowed: revoke one first`,
    ),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({ type: 'token_created', id, role, hash, only: only && [...only], at })
}

function limitFaults(only: readonly string[], role: Role): Fault[] {
  const fault = reachFault(only)
  return [
    ...faultIf(fault !== null, 'usage', 'only', fault ?? ''),
    ...faultIf(
      role === 'admin',
      'usage',
      'role',
      'a token that is limited is a reader or an operator: an admin changes the settings of all',
    ),
  ]
}
