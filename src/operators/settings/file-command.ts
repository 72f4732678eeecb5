// Settings files as YAML (of which JSON is a part), with the lines that faults are in.
// What a settings file may have of a command's environment: who writes the file is trusted with destinations, and not with
// the keys and passwords of whoever applies it.
import { createReadStream } from 'node:fs'
import { Command } from 'commander'
import { Document, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, visit, type Node } from 'yaml'
import { runAction } from '../../cli/context.ts'
import { repeatable, sizeOf, usageError, type JsonFlag } from '../../cli/flags.ts'
import { io, pathOf } from '../../cli/io.ts'
import { inSession } from '../../cli/operations/session.ts'
import { count, print, printable, printJson } from '../../cli/terminal.ts'
import type { Environment } from '../../config/read-environment.ts'
import { variableNames } from '../../config/variables.ts'
import { parsed } from '../check.ts'
import { maxFaults } from '../../core/decision.ts'
import { messageOf, PostriderError, type ErrorCode } from '../../errors.ts'
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

/** As much as the admin API takes. */
const maxBytes = 8 << 20

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
  const { file, refuse } = readSettingsFile(await textOf(name), name === '-' ? 'stdin' : name)
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

async function textOf(name: string): Promise<string> {
  if (name !== '-' && sizeOf(name, 'a settings file') > maxBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  // A pipe has no size before it is read.
  for await (const chunk of name === '-' ? io().stdin : createReadStream(pathOf(name))) {
    chunks.push(chunk as Buffer)
    if ((bytes += (chunk as Buffer).length) > maxBytes) throw tooLarge()
  }
  return Buffer.concat(chunks).toString('utf8')
}

const tooLarge = () => usageError(`the file has more than ${maxBytes >> 20} MB`)

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

/** A fault, by its place in the file: `destinations.2.urls`. */
export interface FileFault {
  field: string
  message: string
}

export interface ReadFile {
  file: SettingsFile
  /** An error that names each fault with its line. */
  refuse(faults: readonly FileFault[], code?: ErrorCode): PostriderError
}

/** Throws `usage` that names everything that is wrong, with its line. Never repeats a value: one may be a secret. */
export function readSettingsFile(text: string, name: string): ReadFile {
  const lines = new LineCounter()
  // The library compares each key with each.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false })
  /** `place` is asked for those faults alone that are named. */
  const refuseAt = <F>(
    faults: readonly F[],
    place: (fault: F) => { at: number | null; message: string },
    code: ErrorCode = 'usage',
  ) => {
    const shown = faults.slice(0, maxFaults).map((fault) => {
      const { at, message } = place(fault)
      return `${name}:${at === null ? 1 : lines.linePos(at).line}: ${message}`
    })
    if (faults.length > maxFaults) shown.push(`and ${faults.length - maxFaults} more`)
    // Only wrong usage is printed on several lines.
    return new PostriderError(code, shown.join(code === 'usage' ? '\n' : '; '))
  }
  const syntax = [
    // The library's own message goes on with the line itself.
    ...document.errors.map(({ pos, message }) => ({ at: pos[0], message: message.split(/ at line /)[0]! })),
    ...repeatedKeys(document),
  ]
  if (syntax.length > 0) throw refuseAt(syntax, (fault) => fault)
  const refuse = (faults: readonly FileFault[], code?: ErrorCode) =>
    refuseAt(
      faults,
      ({ field, message }) => ({
        at: positionOf(document.contents, field.split('.')),
        message: field === '' ? message : `${field}: ${message}`,
      }),
      code,
    )
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 100 }) ?? {}
  } catch (error) {
    throw usageError(`${name}: ${messageOf(error)}`)
  }
  const { data, faults } = parsed(settingsFile, value)
  if (data === undefined) throw refuse(faults)
  return { file: data, refuse }
}

/** A map that names a key twice means neither. */
function repeatedKeys(document: Document.Parsed): { at: number | null; message: string }[] {
  const faults: { at: number | null; message: string }[] = []
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (seen.has(key.value))
          faults.push({ at: key.range?.[0] ?? null, message: 'Map keys must be unique' })
        seen.add(key.value)
      }
    },
  })
  return faults
}

/** Where the innermost part of a path begins that is there. A header's name may hold dots: then its URL's headers. */
function positionOf(contents: Node | null, path: readonly string[]): number | null {
  let node: unknown = contents
  let at = contents?.range?.[0] ?? null
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step)
      if (!isPair(pair)) break
      at = (pair.key as Node).range?.[0] ?? at
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(step)]
      at = (node as Node | undefined)?.range?.[0] ?? at
    } else break
  }
  return at
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
  const text = printable(typeof value === 'string' ? value : JSON.stringify(value))
  return text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength)}…`
}
