import { createReadStream } from 'node:fs'
import { Command } from 'commander'
import { applySettings, type ApplyReport } from '../../console/settings-file/apply.ts'
import { secretPrefix } from '../../console/settings-file/file-schema.ts'
import { SettingsRefused } from '../../console/settings-writer.ts'
import { runAction } from '../context.ts'
import { repeatable, sizeOf, usageError, type JsonFlag } from '../flags.ts'
import { inSession } from '../operations/session.ts'
import { count, print, printJson } from '../output.ts'
import { changeLines } from './change-lines.ts'
import { checkPrefixes, secretVariables } from './secret-variables.ts'
import { readSettingsFile } from './yaml-file.ts'

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
      'Makes sources, destinations, audiences and computed traits what a YAML or JSON file says (- reads stdin), and ' +
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
  const { variables, faults } = secretVariables(file, prefixes, process.env)
  if (faults.length > 0) throw refuse(faults)
  await inSession(command, async ({ settings, services: { secrets } }) => {
    const onDifference = json ? undefined : printDifference
    const options = { dryRun, prune, anyKey, onDifference }
    try {
      const report = await applySettings(file, variables, options, { settings, secrets })
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
  for await (const chunk of name === '-' ? process.stdin : createReadStream(name)) {
    chunks.push(chunk as Buffer)
    if ((bytes += (chunk as Buffer).length) > maxBytes) throw tooLarge()
  }
  return Buffer.concat(chunks).toString('utf8')
}

const tooLarge = () => usageError(`the file has more than ${maxBytes >> 20} MB`)

function printDifference({ changed, keptSecrets, keptComputations }: ApplyReport): void {
  for (const line of changed.flatMap(changeLines)) print(line)
  if (keptSecrets.length > 0) print(`not set, so these secrets stay as they are: ${keptSecrets.join(', ')}`)
  for (const { kind, id } of keptComputations) print(`${kind} "${id}" is not in the file, and stays`)
}

function sentence({ dryRun, applied, changed }: ApplyReport): string {
  if (changed.length === 0) return 'nothing to change'
  const things = count(changed.length, 'change')
  if (applied) return `${things} applied`
  return dryRun ? `${things} would be applied` : 'nothing applied'
}
