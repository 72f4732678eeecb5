// What a settings file may have of a command's environment: who writes the file is trusted with destinations, and not with
// the keys and passwords of whoever applies it.
import { Command } from 'commander'
import { Document } from 'yaml'
import { runAction } from '../../cli/context.ts'
import { repeatable, usageError, type JsonFlag } from '../../cli/flags.ts'
import { io } from '../../cli/io.ts'
import { inSession } from '../../cli/operations/session.ts'
import { count, print, printable, printJson } from '../../cli/terminal.ts'
import type { Environment } from '../../config/read-environment.ts'
import { variableNames } from '../../config/variables.ts'
import { noProxy } from '../../core/delivery/proxy-url.ts'
import { readYamlFile, textOf, type FileFault } from '../../cli/yaml-file.ts'
import {
  secretPrefix,
  settingsFile,
  type GivenSettingsFile,
  type SettingsFile,
  variablesIn,
} from './file-schema.ts'
import { applySettings, type ApplyReport } from './file.ts'
import { SettingsRefused } from './writer.ts'
import type { ChangedSetting } from './history.ts'

interface ApplyFlags extends JsonFlag {
  dryRun?: true
  prune?: true
  anyKey?: true
  secretPrefix?: string[]
}

export const applyCommand = (): Command =>
  new Command('apply')
    .argument('<file>', 'YAML or JSON; - for stdin')
    .summary('Make the settings what a file says')
    .description(
      'Makes plans, sources, destinations, audiences and computed traits what a YAML or JSON file says (- reads stdin), and ' +
        'prints the difference first. All of it counts, or nothing: a fault, or somebody else’s change at the same ' +
        'moment, changes nothing. Each thing in the file stands there whole: what is left out has its default. ' +
        '${NAME} is a secret’s value in that environment variable; where that is not set, the secret stays as it is. Names ' +
        `begin with ${secretPrefix}, so that a file cannot have keys and passwords of yours sent to its URLs.`,
    )
    .addOption(
      repeatable(
        '--secret-prefix <prefix>',
        `also take variables whose names begin with this, beside ${secretPrefix}; repeatable`,
      ),
    )
    .option('--dry-run', 'only print the difference')
    .option('--prune', 'disable sources and destinations that are not in the file; nothing is ever deleted')
    .option(
      '--any-key',
      'encrypt under the first key of SECRETS_KEY even where the settings hold secrets that it does not open',
    )
    .option('--json', 'as one JSON object')
    .action(runAction(apply))

async function apply(name: string, flags: ApplyFlags, command: Command): Promise<void> {
  const { dryRun = false, prune = false, anyKey, secretPrefix: prefixes = [], json } = flags
  checkPrefixes(prefixes)
  const { file, refuse } = readYamlFile(
    await textOf(name, 'a settings file'),
    name === '-' ? 'stdin' : name,
    settingsFile,
  )
  const { variables, faults } = secretVariables(file, prefixes, io().env)
  if (faults.length > 0) throw refuse(faults)
  await inSession(command, async ({ settings, services: { secrets, schemaRefusal } }) => {
    const onDifference = json ? undefined : printDifference
    const options = { dryRun, prune, anyKey, onDifference }
    try {
      const report = await applySettings(file, variables, options, { settings, secrets, schemaRefusal })
      if (json) printJson({ ...report, newVersion: settings.state.version })
      else print(sentence(report))
    } catch (error) {
      if (!(error instanceof SettingsRefused)) throw error
      throw refuse(error.faults, error.code)
    }
  })
}

function printDifference({ changed, keptSecrets, keptComputations, keptPlans }: ApplyReport): void {
  for (const line of changed.flatMap(changeLines)) print(line)
  if (keptSecrets.length > 0) print(`not set, so these secrets stay as they are: ${keptSecrets.join(', ')}`)
  for (const { kind, id } of keptComputations) print(`${kind} "${id}" is not in the file, and stays`)
  for (const id of keptPlans) print(`plan "${id}" is not in the file, and stays`)
}

function sentence({ dryRun, applied, changed }: ApplyReport): string {
  if (changed.length === 0) return 'nothing to change'
  const things = count(changed.length, 'change')
  if (applied) return `${things} applied`
  return dryRun ? `${things} would be applied` : 'nothing applied'
}

const head =
  ' Settings of Postrider: `postrider settings apply` makes them what stands here.\n' +
  ' Secrets are not in here: ${NAME} is the value of that variable, or what there is where it is not set.'

export function settingsYaml(settings: GivenSettingsFile): string {
  const document = new Document(settings)
  document.commentBefore = head
  return document.toString({ lineWidth: 0 })
}

const ownNames = new Set(variableNames.flatMap((name) => [name, `${name}_FILE`] as string[]))

/**
 * The secrets that a file refers to, and each reference that it must not have. Its variables begin with
 * POSTRIDER_SECRET_ or with one of these prefixes.
 */
export function secretVariables(
  file: SettingsFile,
  prefixes: readonly string[],
  env: Environment,
): { variables: Map<string, string>; faults: FileFault[] } {
  const variables = new Map<string, string>()
  const faults: FileFault[] = []
  for (const { field, variable } of variablesIn(file)) {
    const refusal = refusalOf(variable, prefixes)
    if (refusal !== null) faults.push({ field, message: refusal })
    // An empty one is one that is not set, as everywhere.
    else if (env[variable]) variables.set(variable, env[variable])
  }
  return { variables, faults }
}

function refusalOf(variable: string, prefixes: readonly string[]): string | null {
  if (ownNames.has(variable)) return `${variable} is a setting of Postrider, and no file can refer to it`
  if ([secretPrefix, ...prefixes].some((prefix) => variable.startsWith(prefix))) return null
  return `${variable} does not begin with ${secretPrefix}: rename the variable, or give --secret-prefix with what its name begins with`
}

/** Throws `usage` for what could be no beginning of a variable's name; an empty one would open the whole environment. */
export function checkPrefixes(prefixes: readonly string[]): void {
  for (const prefix of prefixes)
    if (!/^[A-Za-z_]\w{2,127}$/.test(prefix))
      throw usageError(
        `--secret-prefix is ${JSON.stringify(prefix)}; it takes what names of variables begin with: 3 to 128 of A-Z a-z 0-9 _, no digit first`,
      )
}

const maxValueLength = 200

/** What changed of one thing, for people: its name, and a line for each field. */
export function changeLines({ kind, id, created, changes }: ChangedSetting): string[] {
  const sign = created ? '+' : '~'
  return [
    `${sign} ${kind} ${id}`,
    ...changes.map(({ field, from, to }) =>
      created ? `    ${field}: ${shown(to)}` : `    ${field}: ${shown(from)} -> ${shown(to)}`,
    ),
  ]
}

function shown(value: unknown): string {
  if (value === null) return 'none'
  // A proxy that is none is not a proxy that is not given.
  const text = printable(typeof value === 'string' && value !== noProxy ? value : JSON.stringify(value))
  return text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength)}…`
}
