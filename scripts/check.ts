// Everything that is checked without running the product: the linter, beside the format, the types and a build. What
// each prints comes when it has ended. Exit code 1 when any of them fails. What was good is known by its content, and is not
// looked at once more.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { defaultCacheDir } from '../src/local/parts.ts'

const root = join(import.meta.dirname, '..')
/** Outlives `npm ci`. Of this checkout alone: the tools know files by their paths. */
const known = join(
  defaultCacheDir(process.env),
  'checked',
  createHash('sha256').update(root).digest('hex').slice(0, 16),
)
/** By content: a new checkout gives every file a new time. */
const byContent = (name: string) => [
  '--cache',
  '--cache-strategy',
  'content',
  '--cache-location',
  join(known, name),
]
const byChange = (name: string) => ['--incremental', '--tsBuildInfoFile', join(known, `${name}.tsbuildinfo`)]

/** What takes longest first: the formatter a third of all. */
const waiting = [
  ['prettier', '--check', '--log-level', 'warn', ...byContent('prettier'), '.'],
  ['tsc', '--noEmit', ...byChange('types')],
  ['eslint', ...byContent('eslint'), '.'],
  [process.execPath, 'scripts/build.ts'],
  ['tsc', '--noEmit', '-p', 'src/web', ...byChange('web')],
  ['depcruise', 'src', '--config', '.dependency-cruiser.js', '--output-type', 'err'],
]
/** Each takes about a core. */
const atOnce = 2

async function passes([program, ...args]: string[]): Promise<boolean> {
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('exit', resolve),
  )
  const [code, ...outputs] = await Promise.all([ended, buffer(child.stdout), buffer(child.stderr)])
  for (const output of outputs) process.stdout.write(output)
  if (code !== 0) console.error(`${[program, ...args].join(' ')} failed`)
  return code === 0
}

async function passOneByOne(): Promise<boolean> {
  let isGood = true
  for (let next = waiting.shift(); next; next = waiting.shift()) isGood = (await passes(next)) && isGood
  return isGood
}

const results = await Promise.all(Array.from({ length: atOnce }, passOneByOne))
if (results.includes(false)) process.exitCode = 1
