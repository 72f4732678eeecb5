import { Command, CommanderError } from 'commander'
import { version } from '../version.ts'
import { failWith } from './fail.ts'
import { SettingOption } from './flags.ts'
import { io, withIo, type OutputStream, type ProgramIo } from './io.ts'

interface Entry {
  name: string
  summary: string
  make(): Promise<Command>
}

/** Its commands come from operations: src/cli/operations/commands-of-operations.ts. */
const fromOperations = (name: string, summary: string, description = summary): Entry => ({
  name,
  summary,
  make: async () => (await import('./operations/commands-of-operations.ts')).namedCommand(name, description),
})

/** In the order of a first acquaintance. A command's file is read only when it is asked for. */
const entries: Entry[] = [
  {
    name: 'dev',
    summary: 'a local Kafka and registry, all parts and a demo: what `npm start` runs',
    make: async () => (await import('./dev/dev.ts')).devCommand(),
  },
  {
    name: 'setup',
    summary: 'create topics and register schemas',
    make: async () => (await import('./setup.ts')).setupCommand(),
  },
  {
    name: 'collector',
    summary: 'take calls over HTTP, until SIGTERM',
    make: async () => (await import('./run.ts')).partCommand('collector'),
  },
  {
    name: 'forwarder',
    summary: 'deliver calls to webhooks, until SIGTERM',
    make: async () => (await import('./run.ts')).partCommand('forwarder'),
  },
  {
    name: 'console',
    summary: 'serve the web console and the admin API, until SIGTERM',
    make: async () => (await import('./run.ts')).partCommand('console'),
  },
  {
    name: 'run',
    summary: 'run several parts in one process, until SIGTERM',
    make: async () => (await import('./run.ts')).runCommand(),
  },
  {
    name: 'produce',
    summary: 'write calls, one JSON object a line, to Kafka',
    make: async () => (await import('./produce.ts')).produceCommand(),
  },
  {
    name: 'receive',
    summary: 'a receiver that prints and verifies what arrives',
    make: async () => (await import('./receive.ts')).receiveCommand(),
  },
  fromOperations(
    'sources',
    'where calls come from',
    'Where calls come from. A source has a write key, which its senders show to the collector; browsers publish it, so it is no secret. Changes take effect in running parts at once.',
  ),
  fromOperations(
    'destinations',
    'where calls go to: URLs, headers, shared secrets',
    'Where calls go: up to 5 URLs each, every call as a signed POST. Shared secrets and header values are kept encrypted (SECRETS_KEY) and never shown again, only as fingerprints. Changes take effect in running parts at once.',
  ),
  fromOperations(
    'alerts',
    'who is told of what happens: Slack, Teams, PagerDuty, mail',
    'Who gets operational events. Slack, Microsoft Teams and PagerDuty are destinations of the source `postrider`, each with the template that it understands; alerts by mail have their addresses here, and are sent by consoles that have MAIL_SMTP_URL.',
  ),
  fromOperations(
    'secrets',
    'change the key that shared secrets are encrypted with',
    'Shared secrets and header values as they lie in the settings: encrypted under SECRETS_KEY. To change the key: set SECRETS_KEY to "new,old" for every process and restart them; run `rotate`; then take the old key out. Fingerprints are made with the key, so they change with it.',
  ),
  fromOperations(
    'settings',
    'who changed what; export and apply as a file; skip what cannot be read',
    'The log that plans, sources, destinations, audiences, traits and alerts by mail are kept in.',
  ),
  fromOperations(
    'tokens',
    'who may use the admin API: tokens with roles',
    'Tokens of the admin API, beside ADMIN_TOKEN. A reader sees everything but the contents of calls; an operator sees those too, sends tests and replays; an admin changes settings and tokens, and deletes. What is done with a token has its name in `postrider settings history`.',
  ),
  fromOperations(
    'plans',
    'what calls should look like, and which do not',
    'Tracking plans: JSON Schemas of calls by event. A source points to one with `sources update shop --plan web`; violations are counted, or kept back.',
  ),
  fromOperations(
    'audiences',
    'who is in them: sync lists of users, notify destinations of who joined and left',
    'Who is in an audience. Destinations of its source get an identify call for each user who joins or leaves: the trait is the audience’s name in snake_case, true or false.',
  ),
  fromOperations(
    'traits',
    'computed traits: sync values of users, notify destinations of what changed',
    'Computed traits: a value for each user. Destinations of its source get an identify call when a user’s value changes: the trait is the name in snake_case.',
  ),
  fromOperations('delete-user', 'erase users, and ask destinations to forget them'),
  fromOperations(
    'deletions',
    'deletion requests: list, show, resume',
    'Deletion requests of the last 40 days, which `postrider delete-user` makes. Each affects the sources that it named, or else all that there were: whether a source ever had a call of a user is not looked at.',
  ),
  fromOperations('suppress', 'take and deliver no more calls of users'),
  fromOperations('unsuppress', 'take and deliver calls of users again'),
  fromOperations(
    'suppressions',
    'suppressed users: list',
    'Users whose calls are neither taken nor delivered: `postrider suppress` and `postrider unsuppress` change that.',
  ),
  fromOperations(
    'dead-letters',
    'what finally failed: list, show, replay',
    'What finally failed: deliveries, and records that never became one. An ID is that of a dead letter as `list` shows it (`<partition>-<offset>`), or a delivery’s (`<messageId>:<destinationId>`).',
  ),
  fromOperations('replay', 'send calls of the past to a destination: what it has not had, or all'),
  fromOperations(
    'replays',
    'replays: list, show, pause, resume, cancel',
    'Replays of the last 30 days, which `postrider replay`, `postrider dead-letters replay` and the ends of pauses make. Consoles run them.',
  ),
  fromOperations(
    'events',
    'what comes in: events and their fields; export as JSON Schema or AsyncAPI',
    'Which events come in at a source, and which fields they have. Values are not kept. It is counted in the index of messages under STORE_PATH, which follows the calls whenever it is asked; the first use reads all that Kafka keeps.',
  ),
  fromOperations('tail', 'calls of a source as they come in'),
  fromOperations('why', 'the life of one call: where it went, each attempt, what became of it'),
  fromOperations(
    'stats',
    'what became of deliveries over time, of all destinations or of one',
    'What became of deliveries, how URLs answer, and what collectors took, over time. Counted is what was committed. The numbers are kept under STORE_PATH; the first use reads the whole ledger. Minutes are kept for 7 days, hours for 90.',
  ),
  fromOperations(
    'problems',
    'what needs somebody: list, acknowledge',
    'What needs somebody, the worst first: parts that are missing, destinations in trouble, calls that are refused or wait, what failed finally. A problem ends by itself. One that was acknowledged needs nobody until it changes.',
  ),
  fromOperations('overview', 'how all of it is now: rates, destinations, sources, backlog'),
  fromOperations('attempts', 'requests to URLs that failed: when, how, after how long'),
  fromOperations('users', 'the calls of one user; when it was erased', 'What is known of one user.'),
  fromOperations('messages', 'what a call says', 'What calls say.'),
  fromOperations('system', 'all processes: what they run, which partitions they read'),
  fromOperations('infrastructure', 'the state of Kafka, the registry and the topics'),
  fromOperations('audits', 'the last verdict of an audit that a console ran', 'Audits that a console ran.'),
  {
    name: 'audit',
    summary: 'prove that every call is accounted for, or name what is missing',
    make: async () => (await import('../operators/audit/command.ts')).auditCommand(),
  },
]

/** Settings that make sense for every command; each is also an environment variable. */
const globalOptions: [flags: string, description: string][] = [
  ['--kafka-brokers <list>', 'host:port, several separated by commas. Else KAFKA_BROKERS.'],
  ['--schema-registry-url <url>', 'Else SCHEMA_REGISTRY_URL.'],
  ['--topic-prefix <prefix>', 'Put before every topic’s name. Else TOPIC_PREFIX.'],
  ['--log-level <level>', 'trace, debug, info, warn, error, fatal or silent. Else LOG_LEVEL.'],
]

/** The first word that is neither a flag nor a global flag's value; after `help`, the next one. */
function commandAskedFor(args: readonly string[]): string | undefined {
  const takesValue = new Set(globalOptions.map(([flags]) => flags.split(' ')[0]))
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!
    if (takesValue.has(arg)) at++
    else if (!arg.startsWith('-') && arg !== 'help') return arg
  }
  return undefined
}

/** Commands that were not made by their parent have taken over nothing of it. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent)
  speakThroughIo(command)
  for (const child of command.commands) inherit(child, command)
}

function speakThroughIo(command: Command): Command {
  const { stdout, stderr } = io()
  return command.configureOutput({
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(text),
    getOutHelpWidth: () => widthOf(stdout),
    getErrHelpWidth: () => widthOf(stderr),
    outputError: (text, write) => write(`${oneLine(text, command)}\n`),
  })
}

const widthOf = ({ isTTY, columns }: OutputStream): number => (isTTY && columns) || 80

/** Runs the program to its end. Never rejects: what goes wrong is said on stderr, and sets the exit code. */
export const runProgram = (args: readonly string[], given: ProgramIo): Promise<void> =>
  withIo(given, async () => {
    try {
      await (await program(args)).parseAsync(args, { from: 'user' })
    } catch (error) {
      if (error instanceof CommanderError) given.exitCode = error.exitCode === 0 ? 0 : 2
      else failWith(error)
    }
  })

/** The whole command line, with the subcommands and flags of the command that is asked for. */
export async function program(args: readonly string[]): Promise<Command> {
  const root = new Command('postrider')
    .description('Delivers analytics calls from Kafka to your own URLs.')
    .version(version, '-v, --version')
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
  speakThroughIo(root)
  for (const [flags, description] of globalOptions) root.addOption(new SettingOption(flags, description))
  const asked = commandAskedFor(args)
  for (const { name, summary, make } of entries) {
    const command = name === asked ? await make() : new Command(name)
    inherit(command.summary(summary), root)
    root.addCommand(command)
  }
  return root
}

/** What commands are called elsewhere, and what does it here. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  create: ['add', 'new', 'make'],
  show: ['get', 'describe', 'view'],
  list: ['ls'],
  update: ['edit', 'set', 'change', 'modify'],
  revoke: ['delete', 'remove', 'rm'],
  disable: ['delete', 'remove', 'rm'],
}

/** An error of Commander's in one line, with all that is missing and where to look. */
function oneLine(text: string, command: Command): string {
  const problem = text
    .trim()
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')
    .replace(/\.$/, '')
  const missing = command.options.filter(
    (option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
  )
  const what =
    problem.startsWith('required option') && missing.length > 1
      ? `required options ${missing.map(({ flags }) => `'${flags}'`).join(', ')} not specified`
      : problem
  return `postrider: ${what}${hintOn(problem, command)}. See \`${nameOf(command)} --help\``
}

/** Where Commander has none, because the words do not look alike. */
function hintOn(problem: string, command: Command): string {
  const word = /^unknown command '([^']+)'$/.exec(problem)?.[1]
  const [meant] = Object.entries(otherWords).find(
    ([name, others]) => word !== undefined && others.includes(word) && has(command, name),
  ) ?? [null]
  if (meant === null) return ''
  return meant === 'disable'
    ? ` (ids are never used again, so nothing is deleted: \`${nameOf(command)} disable\`)`
    : ` (Did you mean ${meant}?)`
}

const has = (command: Command, name: string): boolean =>
  command.commands.some((child) => child.name() === name)

const nameOf = (command: Command): string =>
  command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
