// Everything that is checked without running the product: the linter, beside the format, the types and a build. What
// each prints comes when it has ended. Exit code 1 when any of them fails.
import { spawn } from 'node:child_process'
import { buffer } from 'node:stream/consumers'

/** One after another in each row, the rows side by side: the linter takes as long as all the others. */
const rows = [
  [['eslint', '.']],
  [
    ['prettier', '--check', '--log-level', 'warn', '.'],
    ['tsc', '--noEmit'],
    ['tsc', '--noEmit', '-p', 'src/web'],
    ['depcruise', 'src', '--config', '.dependency-cruiser.js', '--output-type', 'err'],
    [process.execPath, 'scripts/build.ts'],
  ],
]

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

const results = await Promise.all(
  rows.map(async (commands) => {
    let isGood = true
    for (const command of commands) isGood = (await passes(command)) && isGood
    return isGood
  }),
)
if (results.includes(false)) process.exitCode = 1
