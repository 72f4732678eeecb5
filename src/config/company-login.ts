// What the variables about the company's own login must be together.
import type { RoleGrant } from '../core/access/company-roles.ts'
import { variables, type Values, type VariableName } from './variables.ts'

/** How people log in to the console by an OpenID Connect issuer. */
export interface CompanyLogin {
  issuer: string
  clientId: string
  /** Null where the process was not given it: only consoles need it. */
  clientSecret: string | null
  scope: string
  /** The claim that roles come from. */
  rolesClaim: string
  roles: readonly RoleGrant[]
  sessionMs: number
  /** Where people reach the console, without a slash at its end. */
  consoleUrl: string
}

const needed = ['CONSOLE_OIDC_ISSUER', 'CONSOLE_OIDC_CLIENT_ID', 'CONSOLE_OIDC_ROLES'] as const

/** A line for each variable that is missing. The parts of a deployment share their settings, but not this secret. */
export function companyLoginProblems(
  values: Partial<Values>,
  spell: (name: VariableName) => string,
): string[] {
  if ([...needed, 'CONSOLE_OIDC_CLIENT_SECRET' as const].every((name) => values[name] === null)) return []
  return ([...needed, 'CONSOLE_URL'] as const)
    .filter((name) => values[name] === null)
    .map((name) => `${spell(name)} is not set; it takes ${variables[name].takes}`)
}

export function companyLoginOf(values: Values): CompanyLogin | null {
  const { CONSOLE_OIDC_ISSUER: issuer, CONSOLE_URL: consoleUrl } = values
  if (issuer === null) return null
  return {
    issuer,
    clientId: values.CONSOLE_OIDC_CLIENT_ID!,
    clientSecret: values.CONSOLE_OIDC_CLIENT_SECRET,
    scope: values.CONSOLE_OIDC_SCOPE,
    rolesClaim: values.CONSOLE_OIDC_ROLES_CLAIM,
    roles: values.CONSOLE_OIDC_ROLES!,
    sessionMs: values.CONSOLE_OIDC_SESSION,
    consoleUrl: consoleUrl!.replace(/\/+$/, ''),
  }
}
