// Programs that only some tests need. `.ci/tools` gets them.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

const cache = process.env.POSTRIDER_CI_CACHE || join(homedir(), '.cache', 'postrider-ci')

export type OpsTool =
  | 'caddy'
  | 'go'
  | 'helm'
  | 'java'
  | 'nginx'
  | 'node-20'
  | 'node-22'
  | 'php'
  | 'prometheus'
  | 'promtool'
  | 'python3'
  | 'systemd-analyze'

/** Where the tools are: for a PATH. */
export const toolFolders: readonly string[] = [
  join(cache, 'bin'),
  ...(process.env.PATH ?? '').split(delimiter),
]

/** The program's path; null where it is not installed. */
function findTool(name: OpsTool): string | null {
  return toolFolders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null
}

/** What a test needs, and why it is skipped without; in CI nothing is skipped. */
export interface Needed {
  skip: string | false
  path(name: OpsTool): string
  /** The folder with the JSON schemas of Kubernetes, one folder a version. */
  schemas: string
}

export function needed(...names: (OpsTool | 'kubernetes-schemas')[]): Needed {
  const schemas = join(cache, 'kubernetes-schemas')
  const isThere = (name: string) =>
    name === 'kubernetes-schemas' ? existsSync(schemas) : findTool(name as OpsTool) !== null
  const missing = names.filter((name) => !isThere(name))
  const why = `needs ${missing.join(' and ')}: .ci/tools gets what is missing`
  if (missing.length > 0 && process.env.CI) throw new Error(`CI skips no test: this one ${why}`)
  return { skip: missing.length > 0 && why, path: (name) => findTool(name)!, schemas }
}
