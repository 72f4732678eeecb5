// What a settings file may have of a command's environment: who writes the file is trusted with destinations, and not with
// the keys and passwords of whoever applies it.
import type { Environment } from '../../config/read-environment.ts'
import { variableNames } from '../../config/variables.ts'
import { secretPrefix, variablesIn, type SettingsFile } from '../../console/settings-file/file-schema.ts'
import { usageError } from '../flags.ts'
import type { FileFault } from './yaml-file.ts'

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
