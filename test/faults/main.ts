// A run of the fault suite: `npm run test:faults -- --help`. README.md beside this file says what it checks.
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { messageOf } from '../../src/errors.ts'
import { parseOptions, usage } from './options.ts'
import { reportText, type Progress } from './report.ts'
import { run } from './run.ts'

const began = performance.now()
/** stdout, or stderr where stdout is for the report as JSON. */
let said: NodeJS.WriteStream = process.stdout
const print = (text: string) => void said.write(text)

function tell(text: string): void {
  const elapsed = Math.round((performance.now() - began) / 1_000)
  const clock = `${String(Math.floor(elapsed / 60)).padStart(3)}:${String(elapsed % 60).padStart(2, '0')}`
  print(`${clock}  ${text}\n`)
}

async function main(args: readonly string[]): Promise<number> {
  let options
  try {
    options = parseOptions(args)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    return 2
  }
  if (options === 'help') {
    print(`${usage}\n`)
    return 0
  }
  if (options.json) said = process.stderr
  tell(`seed ${options.seed}`)
  const enough = new AbortController()
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (enough.signal.aborted) interrupted.abort(new Error('interrupted'))
      else tell('told to stop: no more faults; once more breaks the run off')
      enough.abort()
    })
  // Started by a test: without it nobody wants to know.
  process.on('disconnect', () => {
    enough.abort()
    interrupted.abort(new Error('interrupted'))
  })
  process.channel?.unref()
  const folder = options.folder
    ? resolve(options.folder)
    : await mkdtemp(join(tmpdir(), `postrider-test-${process.pid}-faults-`))
  await mkdir(folder, { recursive: true })
  let keep = options.folder !== null
  try {
    const { report: file } = options
    // Never half of it: whoever ends this process meanwhile leaves the one before.
    const write = async (report: Progress) => {
      if (file === null) return
      await writeFile(`${file}.new`, `${JSON.stringify(report, null, 2)}\n`)
      await rename(`${file}.new`, file)
    }
    const report = await run(options, folder, {
      ...{ tell, enough: enough.signal, signal: interrupted.signal },
      progress: (known) => (known.state === 'ended' ? Promise.resolve() : write(known)),
    })
    await write(report)
    print(`\n${reportText(report)}\n`)
    if (options.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
    keep ||= !report.passed
    tell(report.passed ? `passed, seed ${options.seed}` : `FAILED, seed ${options.seed}; see ${folder}`)
    return report.passed ? 0 : 1
  } catch (error) {
    keep = true
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    tell(`BROKE OFF, seed ${options.seed}; see ${folder}: ${text}`)
    return 1
  } finally {
    if (!keep) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

// kafkajs drops a promise or two when a broker goes away under it (tulios/kafkajs 1686); the runner has its own ways
// to see what was written.
process.on('unhandledRejection', (error) => {
  if (error instanceof Error && error.name.startsWith('KafkaJS')) return
  throw error
})

// A fault that had begun when the run broke off waits for brokers and processes that are gone by now.
process.exit(await main(process.argv.slice(2)))
