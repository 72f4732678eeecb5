// Programs that only some tests need. `.ci/tools` gets them.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { root } from '../docs.ts'

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
  | 'strace'
  | 'systemd-analyze'
  | 'tinyproxy'
  | `sender-${string}`

/** Where the tools are: for a PATH. */
export const toolFolders: readonly string[] = [
  join(cache, 'bin'),
  ...(process.env.PATH ?? '').split(delimiter),
]

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

/** The program that `.ci/tools` made of test/senders/<name>, of the sources as they are now. */
function senderPath(name: string): string {
  const folder = join(root, 'test/senders', name)
  const files = globSync('**', { cwd: folder })
    .filter((file) => statSync(join(folder, file)).isFile())
    .map((file) => `./${file}`)
  // As `LC_ALL=C sort | xargs sha256sum` prints them.
  const listed = files.toSorted().map((file) => `${sha256(readFileSync(join(folder, file)))}  ${file}\n`)
  return join(cache, `sender-${name}-${sha256(listed.join('')).slice(0, 16)}`, 'sender')
}

/** The program's path; null where it is not installed. */
function findTool(name: OpsTool): string | null {
  if (name.startsWith('sender-')) {
    const path = senderPath(name.slice('sender-'.length))
    return existsSync(path) ? path : null
  }
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
