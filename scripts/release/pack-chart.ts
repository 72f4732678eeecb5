import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Release } from './versions.ts'

/**
 * As `helm package`, but with the same bytes each time: helm writes the present time into the archive. Needs GNU tar.
 * Links to the rules and the dashboard become the files that they lead to.
 */
export function packChart(chart: string, to: string, { version, date }: Release): void {
  const same = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=a+rX,u+w,go-w',
    '--format=ustar',
  ]
  const time = `--mtime=@${date.getTime() / 1_000}`
  const archive = execFileSync(
    'tar',
    ['--create', '--dereference', ...same, time, '-C', dirname(chart), basename(chart)],
    { maxBuffer: 1 << 26 },
  )
  writeFileSync(join(to, `postrider-chart-${version}.tgz`), gzipSync(archive, { level: 9 }))
}
