// Everything that is checked without running the product: the linter, beside the format, the types and a build. What
// each prints comes when it has ended. Exit code 1 when any of them fails.
import { spawn } from 'node:child_process'
import { buffer } from 'node:stream/consumers'

/** What takes longest first: the formatter a third of all. */
const waiting = [
  ['prettier', '--check', '--log-level', 'warn', '.'],
  ['tsc', '--noEmit'],
  ['eslint', '.'],
  [process.execPath, 'scripts/build.ts'],
  ['tsc', '--noEmit', '-p', 'src/web'],
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
