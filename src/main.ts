#!/usr/bin/env node
import './exit-on-old-node.ts'
import './thread-pool.ts'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Command, CommanderError } from 'commander'
import { failWith } from './commands/fail.ts'
import { guardProcess } from './commands/stray-errors.ts'

interface Entry {
  name: string
  summary: string
}

/** In the order of a first acquaintance. A command's file is read only when it is asked for. */
const entries: Entry[] = [
  { name: 'dev', summary: 'a local Kafka and registry, all parts and a demo: what `npm start` runs' },
  { name: 'setup', summary: 'create topics and register schemas' },
  { name: 'collector', summary: 'take calls over HTTP, until SIGTERM' },
  { name: 'forwarder', summary: 'deliver calls to webhooks, until SIGTERM' },
  { name: 'console', summary: 'serve the admin API, until SIGTERM' },
  { name: 'run', summary: 'run several parts in one process, until SIGTERM' },
  { name: 'produce', summary: 'write calls, one JSON object a line, to Kafka' },
  { name: 'receive', summary: 'a receiver that prints and verifies what arrives' },
  { name: 'sources', summary: 'where calls come from' },
  { name: 'destinations', summary: 'where calls go to: URLs, headers, shared secrets' },
  { name: 'secrets', summary: 'change the key that shared secrets are encrypted with' },
  { name: 'settings', summary: 'skip an event of the settings log that cannot be read' },
  {
    name: 'audiences',
    summary: 'who is in them: sync lists of users, notify destinations of who joined and left',
  },
  { name: 'traits', summary: 'computed traits: sync values of users, notify destinations of what changed' },
  { name: 'delete-user', summary: 'erase users, and ask destinations to forget them' },
  { name: 'deletions', summary: 'deletion requests: list, show, resume' },
  { name: 'dead-letters', summary: 'what finally failed: list, show, replay' },
  { name: 'why', summary: 'the life of one call: where it went, each attempt, what became of it' },
  { name: 'audit', summary: 'prove that every call is accounted for, or name what is missing' },
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

/** TypeScript in a checkout, JavaScript in what is built. */
const fileOf = (name: string): URL =>
  new URL(`./commands/${name}${extname(import.meta.filename)}`, import.meta.url)

async function load(name: string): Promise<Command> {
  const loaded = (await import(fileOf(name).href)) as Record<string, () => Command>
  const make = loaded[`${name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())}Command`]
  if (!make) throw new Error(`${name} exports no command`)
  return make()
}

function version(): string {
  const file = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { version: string }).version
}

/** Commands that were not made by their parent have taken over nothing of it. */
function inherit(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent)
  for (const child of command.commands) inherit(child, command)
}

async function program(args: readonly string[]): Promise<Command> {
  const root = new Command('postrider')
    .description('Delivers analytics calls from Kafka to your own URLs.')
    .version(version())
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({ outputError: (text, write) => write(oneLine(text, args)) })
  for (const [flags, description] of globalOptions) root.option(flags, description)
  const asked = commandAskedFor(args)
  for (const { name, summary } of entries) {
    const command = name === asked ? await load(name) : new Command(name)
    inherit(command.summary(summary), root)
    root.addCommand(command)
  }
  return root
}

/** Commander puts a suggestion on a line of its own. */
function oneLine(text: string, args: readonly string[]): string {
  const asked = entries.find(({ name }) => name === commandAskedFor(args))
  const help = ['postrider', ...(asked ? [asked.name] : []), '--help'].join(' ')
  return `postrider: ${text
    .trim()
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')}. See \`${help}\`\n`
}

async function main(): Promise<void> {
  guardProcess()
  const args = process.argv.slice(2)
  try {
    await (await program(args)).parseAsync(args, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else failWith(error)
  }
}

await main()
