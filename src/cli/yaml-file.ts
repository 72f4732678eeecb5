// Files as YAML (of which JSON is a part), with the lines that faults are in.
import { createReadStream } from 'node:fs'
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
} from 'yaml'
import type { z } from 'zod'
import { maxFaults } from '../core/decision.ts'
import { messageOf, PostriderError, type ErrorCode } from '../errors.ts'
import { parsed } from '../operators/check.ts'
import { sizeOf, usageError } from './flags.ts'
import { io, pathOf } from './io.ts'

/** As much as the admin API takes. */
const maxBytes = 8 << 20

/** The text of a file, or of stdin for `-`. Throws `usage`. @param needs what the file is to be, for people */
export async function textOf(name: string, needs: string): Promise<string> {
  if (name !== '-' && sizeOf(name, needs) > maxBytes) throw tooLarge()
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

/** A fault, by its place in the file: `destinations.2.urls`. */
export interface FileFault {
  field: string
  message: string
}

export interface ReadFile<T> {
  file: T
  /** An error that names each fault with its line. */
  refuse(faults: readonly FileFault[], code?: ErrorCode): PostriderError
}

/** Throws `usage` that names everything that is wrong, with its line. Never repeats a value: one may be a secret. */
export function readYamlFile<T>(text: string, name: string, schema: z.ZodType<T>): ReadFile<T> {
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
  const { data, faults } = parsed(schema, value)
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
