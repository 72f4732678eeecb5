import { operations } from '../src/operators/operations.ts'
import { roleOf } from '../src/operators/operation.ts'
import { roles, type Role } from '../src/core/access/roles.ts'

const meanings: Record<Role, string> = {
  reader: 'sees everything but the contents of calls',
  operator: 'also sees contents, sends tests and replays',
  admin: 'also changes settings and tokens, and deletes',
}

/** Which role each operation takes, as a Markdown table; docs/admin-api.md holds a copy, which a test compares. */
export function rolesTable(): string {
  const rows = roles.map((role) => {
    const taking = operations.filter((operation) => !operation.isOpen && roleOf(operation) === role)
    const routes = taking.map(({ method, path }) => `\`${method} ${path}\``)
    return `| \`${role}\` | ${meanings[role]} | ${routes.join(', ')} |`
  })
  return ['| role | its holder | routes that take it, or one below |', '|---|---|---|', ...rows].join('\n')
}
