import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** As commands print it, and metrics and heartbeats name it. */
export const version: string = versionOf(join(import.meta.dirname, '..'))

/**
 * Of a checkout or an installed package: what its package.json says and, between two releases, the commit, so that
 * any two states can be told apart: `0.2.0-dev+1f2e3d4`. Without a commit where none is known.
 */
export function versionOf(root: string): string {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
    /** What a build puts there. */
    gitHead?: string
  }
  if (!isBetweenReleases(manifest.version)) return manifest.version
  const commit = manifest.gitHead ?? commitOf(root)
  return commit === null ? manifest.version : `${manifest.version}+${commit.slice(0, 7)}`
}

export function isBetweenReleases(version: string): boolean {
  return version.endsWith('-dev')
}

/** The commit that is checked out, from git's own files, so that git need not be installed. Null for what is no checkout. */
export function commitOf(root: string): string | null {
  const read = (...path: string[]) => readFileSync(join(...path), 'utf8').trim()
  try {
    const dotGit = join(root, '.git')
    // A further worktree has a file that names its folder, and the refs of the repository.
    const folder = statSync(dotGit).isFile() ? resolve(root, read(dotGit).replace('gitdir: ', '')) : dotGit
    const common = existsSync(join(folder, 'commondir')) ? resolve(folder, read(folder, 'commondir')) : folder
    const head = read(folder, 'HEAD')
    const ref = head.startsWith('ref: ') ? head.slice('ref: '.length) : null
    if (ref === null) return head
    if (existsSync(join(common, ref))) return read(common, ref)
    const packed = read(common, 'packed-refs').split('\n')
    return packed.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0] ?? null
  } catch {
    return null
  }
}
