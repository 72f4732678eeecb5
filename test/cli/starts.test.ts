// Tests run commands in their own process; what only a process of its own shows is shown here.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { program } from '../../src/cli/program.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { startProgram } from '../support/deployment/command-rig.ts'
import { startCommand } from '../support/deployment/deployment-cli.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

/** The arguments; the exit code; and all of stdout, or of stderr where the command fails: the other one is empty. */
type Start = [args: string, status: number, output: RegExp]

/** `dev`, the parts and `receive` run until a signal, and have tests that send one. */
const starts: Readonly<Record<string, Start>> = {
  dev: ['--help', 0, /^Usage: postrider dev /],
  setup: ['', 0, /^TOPIC +PARTITIONS\n/],
  collector: ['--nothing', 2, /^postrider: unknown option '--nothing'\. See `postrider collector --help`\n$/],
  forwarder: ['--group-id=', 2, /^postrider: --group-id is empty; it takes .*\n$/],
  console: ['', 2, /^postrider: ADMIN_TOKEN is not set, .*\n$/],
  run: ['nothing', 2, /^postrider: there is no part "nothing"; there is: .*\n$/],
  produce: ['-', 0, /^0 calls produced to .*analytics\.calls\n$/],
  receive: ['--port x', 2, /^postrider: --port: 'x' is not a whole number from 0 to 65535\n$/],
  sources: ['list', 0, /^ID +NAME .*\nshop +Shop +enabled/],
  destinations: ['list', 0, /^no destinations; /],
  alerts: ['list', 0, /^no destination gets operational events; /],
  secrets: ['rotate --dry-run', 0, /^0 secrets would be encrypted again under key [0-9a-f]{8}\n$/],
  settings: ['history', 0, /source_created\n {2}\+ source shop\n/],
  tokens: ['list', 0, /^no tokens but ADMIN_TOKEN; /],
  plans: ['list', 0, /^no plans; /],
  audiences: ['list', 0, /^none\n$/],
  traits: ['list', 0, /^none\n$/],
  'delete-user': ['u-1 --dry-run', 0, /^1 user would be erased at shop; /],
  deletions: ['list', 0, /^no deletion requests; /],
  suppress: ['u-1', 0, /^1 user suppressed at every source\n$/],
  unsuppress: ['u-2', 0, /^1 user not suppressed at every source any more/],
  suppressions: ['list --user u-3', 0, /^no such user is suppressed\n$/],
  'dead-letters': ['list', 0, /^no dead letters\n$/],
  replay: ['--destination none', 2, /^postrider: give --since, or --message with the id of one call\n$/],
  replays: ['list', 0, /^no replays; /],
  events: ['list --source shop', 0, /^no call of shop is in Kafka\n$/],
  tail: ['none', 1, /^postrider: source "none" does not exist; .*\n$/],
  why: ['m-1', 1, /^postrider: nothing is known of messageId "m-1": .*\n$/],
  stats: ['total', 0, /^all: .* 60 points of 1m\n/],
  problems: ['list', 0, /^2 things need you\n\nID +SINCE +WHAT .*\nno_collector /],
  overview: ['', 0, /^since .*\naccepted 0\/s /],
  attempts: ['', 0, /^no attempt is listed that is asked for\n$/],
  users: ['messages u-1', 0, /^there is none\n$/],
  messages: ['body m-1', 1, /^postrider: messageId "m-1": no such copy of the call lies in Kafka\n$/],
  system: ['', 0, /^PROCESS +STATE .*\n$/],
  infrastructure: ['', 0, /^Kafka +cluster .*\n +broker /],
  audits: ['show', 0, /^last: null\nrunning: null\nfailure: null\n$/],
  audit: ['', 0, /^the ledger holds nothing of this time\n\neverything is accounted for /],
}

const atOnce = 4

test('each command starts as a process of its own, answers on its streams and exits with its code', async (t) => {
  const { commands } = await program([])
  assert.deepEqual(
    Object.keys(starts),
    commands.map((command) => command.name()),
  )
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t) })
  const shop = { id: 'shop', name: 'Shop', writeKey: 'wk', enabled: true }
  await deployment.settings.execute({ type: 'create_source', ...shop })
  const check = async ([name, [args, expected, output]]: [string, Start]) => {
    const words = args.split(' ').filter((word) => word !== '')
    const { process: child, ended } = startCommand(t, deployment, name, ...words)
    child.stdin.end()
    const { status, stdout, stderr } = await ended
    const [said, silent] = expected === 0 ? [stdout, stderr] : [stderr, stdout]
    assert.deepEqual([status, silent], [expected, ''], `${name}: ${stdout}${stderr}`)
    assert.match(said, output, name)
  }
  const waiting = Object.entries(starts)
  while (waiting.length > 0) await Promise.all(waiting.splice(0, atOnce).map(check))
})

const badLines = 20_000

test('all of a long output is written before the process ends, and a reader may leave early', async (t) => {
  const deployment = await deploy(t)
  const start = () => {
    const command = startCommand(t, deployment, 'produce', '--json')
    command.process.stdin.end('no JSON\n'.repeat(badLines))
    return command
  }
  const { status, stdout, stderr } = await start().ended
  assert.deepEqual([status, stderr], [1, ''])
  const lines = stdout.trimEnd().split('\n')
  assert.equal(lines.length, badLines + 1)
  assert.match(lines.at(-1)!, new RegExp(`"produced":0,"bad":${badLines}\\}$`))
  assert.ok(stdout.length > 1_000_000, 'more than a pipe holds')

  const left = start()
  await once(left.process.stdout, 'data')
  left.process.stdout.destroy()
  const seen = await left.ended
  assert.deepEqual([seen.status, seen.stderr], [1, ''], 'it reads all lines, and says that they are bad')
})

test('an error that nothing handles gets one line, and ends the process with exit code 1', async (t) => {
  const script = "process.once('beforeExit', () => Promise.reject(new Error('stray')))"
  const env = { ...bareEnv, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` }
  const { status, stdout, stderr } = await startProgram(t, env, ['--version']).ended
  assert.deepEqual([status, stderr], [1, 'postrider: a bug: stray\n'])
  assert.match(stdout, /^\d/)
})
