import type { TokenCommand } from '../settings/commands.ts'
import { accepted, refused, type Decision } from '../settings/events.ts'
import { faultIf } from '../settings/fault.ts'
import type { SettingsAggregate } from '../settings/settings.ts'
import { idFaults } from '../settings/source-rules.ts'
import { roles } from './roles.ts'

/** That work at the same time: each request is compared with all of them. */
export const maxTokens = 100

export function decideToken(command: TokenCommand, { tokens }: SettingsAggregate): Decision {
  const { id, at } = command
  const found = tokens.get(id)
  if (command.type === 'revoke_token') {
    if (!found) return refused('not_found', 'id', `token ${JSON.stringify(id)} does not exist`)
    return accepted(found.revokedAt === null ? { type: 'token_revoked', id, at } : null)
  }
  const { role, hash } = command
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
    ...faultIf(
      working.length >= maxTokens,
      'conflict',
      'id',
      `there are ${working.length} tokens, the most that are allowed: revoke one first`,
    ),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({ type: 'token_created', id, role, hash, at })
}
