// What every command shares: settings, log, a Kafka client, and how errors become exit codes.
import type { Command, Option } from 'commander'
import type { Kafka } from 'kafkajs'
import { createKafka } from '../adapters/kafka/patched-client.ts'
import { loginOf } from '../adapters/kafka/secure/kafka-login.ts'
import { createLog, secretsOf, type Logger } from '../adapters/log.ts'
import { createCodecs, type Codecs } from '../adapters/schema-registry/codecs.ts'
import { clearTextWarnings, loadConfig, type Config } from '../config/config.ts'
import { layered, readDevEnv, takenFrom, usableDevEnv } from '../config/dev-env.ts'
import type { Environment } from '../config/read-environment.ts'
import { variableNames, variables, type VariableName } from '../config/variables.ts'
import { topicNames, type TopicNames } from '../core/topics.ts'
import { failAs, failWith, logStrayErrorsTo } from './fail.ts'
import { SettingOption, usageError } from './flags.ts'
import { io, pathOf } from './io.ts'
import { printAside } from './terminal.ts'

/** What commands and parts work with: one of each for the whole process, made when it is first asked for. */
export interface Context {
  config: Config
  log: Logger
  kafka: Kafka
  topics: TopicNames
  codecs: Codecs
}

/** Asks Kafka and the registry for nothing yet. */
export function contextOf({ config, log }: Pick<Context, 'config' | 'log'>, kafkaLog = log): Context {
  const topics = topicNames(config.topicPrefix)
  let kafka: Kafka | undefined
  let codecs: Codecs | undefined
  return {
    config,
    log,
    topics,
    get kafka() {
      return (kafka ??= createKafka(config, kafkaLog))
    },
    get codecs() {
      return (codecs ??= createCodecs({ registry: config.registry, topics, log }))
    },
  }
}

export interface ContextOptions {
  /** Runs until a signal stops it: logs on stdout at info. Else on stderr, at warn unless LOG_LEVEL is set. */
  longLived?: boolean
  /** In place of what `.postrider/dev.env` says: for `dev` itself, which writes it. */
  devEnv?: Environment
}

/**
 * The settings and tools of a command that was called: a flag beats the environment, which beats what `dev` left in
 * `.postrider/dev.env`, which beats the default. Throws PostriderError 'usage' for wrong settings.
 */
export function loadContext(command: Command, options: ContextOptions = {}): Context {
  const own = io()
  const flags = settingFlags(command)
  const given = layered(flags, own.env)
  const devEnv =
    options.devEnv ?? usableDevEnv(readDevEnv(own.cwd), given, options.longLived ? 'part' : 'command')
  const env = layered(given, devEnv)
  const config = loadConfig(env, (name) => {
    if (flags[name]) return flagOf(name)
    return own.env[name] || !devEnv[name] ? name : `${name} (in .postrider/dev.env)`
  })
  if (!options.longLived && !env.LOG_LEVEL) config.logLevel = 'warn'
  config.storePath = pathOf(config.storePath)
  const logTo = options.longLived ? 'stdout' : 'stderr'
  const log = createLog({
    level: config.logLevel,
    to: own.ownsProcess ? logTo : own[logTo],
    secrets: secretsOf(config),
  })
  logStrayErrorsTo(log)
  failAs(loginOf(config.kafka))
  const taken = options.devEnv ? [] : takenFrom(devEnv, given)
  if (taken.length > 0) {
    const line = `settings of npm start: ${taken.join(', ')} (.postrider/dev.env)`
    if (options.longLived) log.info(line)
    else if (log.isLevelEnabled('warn')) printAside(line)
  }
  if (options.longLived) for (const warning of clearTextWarnings(config)) log.warn(warning)
  // A command that ends says in one line what kafkajs would say at each try.
  const kafkaLog = options.longLived || env.LOG_LEVEL ? log : log.child({}, { level: 'error' })
  return contextOf({ config, log }, kafkaLog)
}

const flagOf = (name: VariableName): string => `--${name.toLowerCase().replaceAll('_', '-')}`

/** For commands where that is handy: `--metrics-port <value>`. */
export function settingOption(name: VariableName): Option {
  const { meaning, takes } = variables[name]
  return new SettingOption(`${flagOf(name)} <value>`, `${meaning} Takes ${takes}. Else ${name}.`)
}

/** The settings that were given as flags, on the command itself or before it. */
function settingFlags(command: Command): Environment {
  const flags: Record<string, string> = {}
  const given = new Map<string, unknown>()
  for (let each: Command | null = command; each !== null; each = each.parent)
    for (const option of each.options)
      if (option instanceof SettingOption && !given.has(option.long!))
        given.set(option.long!, each.getOptionValue(option.attributeName()))
  for (const name of variableNames) {
    const text = given.get(flagOf(name))
    if (text === '') throw usageError(`${flagOf(name)} is empty; it takes ${variables[name].takes}`)
    if (typeof text === 'string') flags[name] = text
  }
  return flags
}

/**
 * Wraps a command's action: what it throws becomes one line on stderr and the exit code (2 for wrong usage, else
 * 1). An action that only partly succeeded sets the exit code of its `io()` itself.
 */
export function runAction<A extends unknown[]>(
  action: (...args: A) => Promise<void> | void,
): (...args: A) => Promise<void> {
  return async (...args) => {
    try {
      await action(...args)
    } catch (error) {
      failWith(error)
    }
  }
}

/** Uses what is open, and closes it whatever comes of it. */
export async function withOpen<P extends { close(): unknown }, T>(
  open: P,
  use: (open: P) => Promise<T> | T,
): Promise<T> {
  try {
    return await use(open)
  } finally {
    await open.close()
  }
}
