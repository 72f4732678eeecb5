// The versions of Node on which the client is tested.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { needed } from '../ops/tools.ts'

export interface TestedNode {
  /** For people: `Node 20.0.0`, or `Node 20` where there is none. */
  name: string
  /** Why there is none here. */
  skip: string | false
  path: string
}

const versionOf = (path: string): string =>
  execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().slice(1)

/** The machine's own, which `npm ci` puts none of its packages before. */
function ownNodes(): string[] {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .filter((path) => existsSync(path))
}

/** 20 and 22 of `.ci/tools`, what else this machine has, and the one that runs the tests. */
export function testedNodes(): TestedNode[] {
  const byVersion = new Map<string, string>()
  for (const path of [...ownNodes(), process.execPath]) {
    const version = versionOf(path)
    if (Number.parseInt(version, 10) >= 20) byVersion.set(version, path)
  }
  const missing: TestedNode[] = []
  for (const tool of ['node-20', 'node-22'] as const) {
    const major = tool.slice('node-'.length)
    const { skip, path } = needed(tool)
    if (skip === false) byVersion.set(versionOf(path(tool)), path(tool))
    else if (![...byVersion.keys()].some((version) => version.startsWith(`${major}.`)))
      missing.push({ name: `Node ${major}`, skip, path: '' })
  }
  const found = [...byVersion].map(
    ([version, path]) => ({ name: `Node ${version}`, skip: false, path }) as const,
  )
  return [...missing, ...found].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
}
