// Settings files as YAML (of which JSON is a part), with the lines that faults are in.
import { Document, isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, visit, type Node } from 'yaml'
import { parsed } from '../../console/api/check.ts'
import {
  settingsFile,
  type GivenSettingsFile,
  type SettingsFile,
} from '../../console/settings-file/file-schema.ts'
import { maxFaults } from '../../core/settings/fault.ts'
import { messageOf, PostriderError, type ErrorCode } from '../../errors.ts'
import { usageError } from '../flags.ts'

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
