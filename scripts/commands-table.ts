import { operations } from '../src/operators/operations.ts'
import { roleOf } from '../src/operators/operation.ts'

/** Which command does which operation of the admin API, as a Markdown table; docs/commands.md holds a copy, which a test compares. */
export function commandsTable(): string {
  const rows = operations.flatMap((operation) => {
    const { command, method, path, summary } = operation
    if (command === null) return []
    const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ` <${name}>`).join('')
    return `| \`${command}${ids}\` | ${summary} | \`${method} ${path}\` | \`${roleOf(operation)}\` |`
  })
  return ['| command | does | route | role |', '|---|---|---|---|', ...rows].join('\n')
}
