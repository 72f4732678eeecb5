import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { isBetweenReleases } from '../../src/version.ts'

export interface Release {
  version: string
  /** Of the version in CHANGELOG.md: the time that everything released has, whenever it is made. */
  date: Date
}

/** Throws where the places that name the version do not agree, or CHANGELOG.md has no entry for it. */
export function readRelease(root: string): Release {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const chart = parse(read('ops/helm/postrider/Chart.yaml')) as { version: string; appVersion: string }
  if (chart.version !== version || chart.appVersion !== version)
    throw new Error(
      `package.json has version ${version}, and Chart.yaml ${chart.version}/${chart.appVersion}`,
    )
  // Between two releases, to try it: the date of the last one, so that two runs make the same bytes.
  const named = isBetweenReleases(version) ? '' : `${version} - `
  const heading = read('CHANGELOG.md')
    .split('\n')
    .find((line) => line.startsWith(`## ${named}`) && / - \d{4}-\d\d-\d\d$/.test(line))
  const date = new Date(`${heading?.split(' - ')[1]}T00:00:00Z`)
  if (Number.isNaN(date.getTime()))
    throw new Error(
      `CHANGELOG.md has no section "## ${version} - YYYY-MM-DD": write what has changed, and the date`,
    )
  return { version, date }
}

/** Throws unless the checkout is exactly what its tag says. */
export function checkPublishable(root: string, { version }: Release): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  const changed = git('status', '--porcelain')
  if (changed !== '') throw new Error(`commit first, only what is committed is released:\n${changed}`)
  if (isBetweenReleases(version))
    throw new Error(`${version} is not released: set the version in package.json, or use --dry-run`)
  const tags = git('tag', '--points-at', 'HEAD').split('\n')
  if (!tags.includes(`v${version}`))
    throw new Error(`this commit has no tag v${version}: tag it, or use --dry-run`)
}
