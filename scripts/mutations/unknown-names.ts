import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { mutate, type Mutation } from './mutation.ts'

/** The compiler's codes for a name, member or import that does not exist. */
const codes = [2304, 2305, 2307, 2339, 2551, 2552, 2663, 18004, 18016]
/** A condition that became always false leaves nothing behind it with members: the program runs all the same. */
const narrowedAway = /on type 'never'/

/**
 * What is wrong with mutated files, one line each: text that does not parse, and names that do not exist. Any test
 * would fail with these, whatever it promises, so catching them would prove nothing.
 */
export function unknownNames(root: string, mutations: readonly Mutation[]): string[] {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const mutated = new Map<string, { text: string; version: number }>()
  const service = ts.createLanguageService({
    ...ts.sys,
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
    getScriptFileNames: () => fileNames.filter((name) => name.startsWith(join(root, 'src'))),
    getScriptVersion: (name) => String(mutated.get(name)?.version ?? 0),
    getScriptSnapshot: (name) => {
      const text = mutated.get(name)?.text ?? ts.sys.readFile(name)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => root,
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
  })
  const found: string[] = []
  let version = 0
  for (const mutation of mutations) {
    if (!mutation.file.endsWith('.ts')) continue
    const file = join(root, mutation.file)
    const text = readFileSync(file, 'utf8')
    mutated.set(file, { text: mutate(text, mutation), version: ++version })
    const named = service.getSemanticDiagnostics(file).filter(({ code }) => codes.includes(code))
    for (const { messageText } of [...service.getSyntacticDiagnostics(file), ...named]) {
      const text = ts.flattenDiagnosticMessageText(messageText, ' ')
      if (!narrowedAway.test(text)) found.push(`${mutation.id}: ${text}`)
    }
    mutated.set(file, { text, version: ++version })
  }
  return found
}
