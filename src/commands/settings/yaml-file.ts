// Settings files as YAML (of which JSON is a part), with the lines that faults are in.
import { Document, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, type Node } from 'yaml'
import { parsed } from '../../console/api/check.ts'
import {
  settingsFile,
  type GivenSettingsFile,
  type SettingsFile,
} from '../../console/settings-file/file-schema.ts'
import { messageOf, PostriderError, type ErrorCode } from '../../errors.ts'
import { usageError } from '../flags.ts'

/** As many faults are named. */
const maxFaults = 100

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
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true })
  const refuseLines = (faults: readonly [line: number, message: string][], code: ErrorCode = 'usage') => {
    const shown = faults.slice(0, maxFaults).map(([line, message]) => `${name}:${line}: ${message}`)
    if (faults.length > maxFaults) shown.push(`and ${faults.length - maxFaults} more`)
    // Only wrong usage is printed on several lines.
    return new PostriderError(code, shown.join(code === 'usage' ? '\n' : '; '))
  }
  if (document.errors.length > 0)
    throw refuseLines(
      // The library's own message goes on with the line itself.
      document.errors.map(({ pos, message }) => [lines.linePos(pos[0]).line, message.split(/ at line /)[0]!]),
    )
  const refuse = (faults: readonly FileFault[], code?: ErrorCode) =>
    refuseLines(
      faults.map(({ field, message }) => {
        const at = positionOf(document.contents, field.split('.'))
        return [at === null ? 1 : lines.linePos(at).line, field === '' ? message : `${field}: ${message}`]
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
