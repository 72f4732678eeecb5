import { reachFault, type Reach } from './reach.ts'
import { roles, type Role } from './roles.ts'

/** What people of whom the company's login says this value may do here. */
export interface RoleGrant {
  /** Of the claim that roles come from: a group, for example. */
  value: string
  role: Role
  only: Reach
}

/** What a login says of a person. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * The grants that a text lists: `platform=admin,agency=operator:crm:shop-*`. A value may have `=` in it, but no comma. A text that
 * is no such list is answered by what is wrong with it.
 */
export function parseRoleGrants(text: string): RoleGrant[] | { fault: string } {
  const grants: RoleGrant[] = []
  for (const item of text.split(',').map((each) => each.trim())) {
    const equals = item.lastIndexOf('=')
    const value = item.slice(0, Math.max(equals, 0)).trim()
    const [name, ...ids] = item
      .slice(equals + 1)
      .split(':')
      .map((each) => each.trim())
    const role = roles.find((each) => each === name)
    if (value === '' || !role) return { fault: `${JSON.stringify(item)} is not value=role` }
    if (grants.some((each) => each.value === value))
      return { fault: `${JSON.stringify(value)} is named twice` }
    const only = ids.length === 0 ? null : ids
    const fault = only && reachFault(only)
    if (fault) return { fault: `${JSON.stringify(item)}: ${fault}` }
    if (only && role === 'admin') return { fault: `${JSON.stringify(item)}: an admin cannot be limited` }
    grants.push({ value, role, only })
  }
  return grants
}

/** The first grant, in the order of the list, of which a person has the value; null for a person without any. */
export function grantOf(grants: readonly RoleGrant[], claims: Claims, claim: string): RoleGrant | null {
  const said = claimOf(claims, claim)
  const values: unknown[] = Array.isArray(said) ? said : [said]
  return grants.find(({ value }) => values.includes(value)) ?? null
}

/** A claim by its name; where there is none of this name, dots lead into objects: `realm_access.roles`. */
export function claimOf(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name
    .split('.')
    .reduce<unknown>(
      (within, key) =>
        typeof within === 'object' && within !== null && Object.hasOwn(within, key)
          ? (within as Claims)[key]
          : undefined,
      claims,
    )
}

/** Before the names of people, so that no token has the same name: theirs hold no colon. */
const prefix = 'oidc:'

/**
 * The name by which logs and the history of the settings know a person: the address, unless the login says that it is
 * not verified, else `sub`. Null where the login says neither as it must.
 */
export function personName({ email, email_verified: isVerified, sub }: Claims): string | null {
  const hasForm = (text: unknown): text is string =>
    typeof text === 'string' && text.length <= 255 && /^[^\s\p{C}]+$/u.test(text)
  if (hasForm(email) && isVerified !== false && isVerified !== 'false') return prefix + email
  return hasForm(sub) ? prefix + sub : null
}

/** The name without what tells people from tokens; null for a token's. */
export const nameOfPerson = (name: string): string | null =>
  name.startsWith(prefix) ? name.slice(prefix.length) : null

/** Why a login by the company's own did not come about. */
export const loginFaults = ['away', 'refused', 'wrong', 'no_role'] as const
export type LoginFault = (typeof loginFaults)[number]
