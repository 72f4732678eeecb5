import type { ValueExpression } from '../expression/call-expression.ts'
import type { Run } from '../expression/evaluation.ts'
import { quoted } from '../json/quoted.ts'
import { isObject, parseJson, rawJSON } from '../json/parse-json.ts'
import { jsonWithoutMarks, secretIn, withoutMarks } from './secret-holes.ts'
import {
  absent,
  hasHoles,
  holesOf,
  jsonText,
  onlyHoleOf,
  parseTemplate,
  textOf,
  valueOf,
  type TextTemplate,
} from './text-template.ts'

/** Of the template's text. */
export const maxBodyTemplateLength = 32_768
const maxHoles = 200

/** A JSON template: writes the JSON of a call; null where it leaves the value out. */
type Write = (run: Run) => string | null

/**
 * A JSON document whose texts may have holes. A text that is one hole takes the value's own type; where the call has no
 * such value its key, or its element of a list, is left out. In any other text a value is written as text.
 */
export interface BodyTemplate {
  /** Every hole, in the order in which they stand. */
  readonly holes: readonly ValueExpression[]
  /** Names of the secrets in it, each once. In what it renders marks stand for them. */
  readonly secrets: readonly string[]
  /** The JSON. Throws Unrenderable. */
  render(run: Run): string
}

/** The template, or what is wrong with its text. */
export function compileBody(
  text: string,
): { body: BodyTemplate; fault: null } | { body: null; fault: string } {
  const refused = (fault: string) => ({ body: null, fault })
  if (text.length > maxBodyTemplateLength)
    return refused(`has ${text.length} characters, at most ${maxBodyTemplateLength} are allowed`)
  let document: unknown
  try {
    // Numbers keep their digits.
    document = parseJson(text, rawJSON)
  } catch (error) {
    return refused(`is not JSON: ${(error as Error).message}`)
  }
  const compiler = new Compiler(false)
  const plain = compiler.write(document)
  const [fault] = compiler.faults
  if (fault !== undefined) return refused(fault)
  if (compiler.holes.length > maxHoles)
    return refused(`has ${compiler.holes.length} holes, at most ${maxHoles} are allowed`)
  const { holes } = compiler
  const secrets = [...new Set(holes.flatMap((hole) => secretIn(hole.text) ?? []))]
  const write = secrets.length === 0 ? plain : new Compiler(true).write(document)
  return { body: { holes, secrets, render: (run) => write(run) ?? 'null' }, fault: null }
}

class Compiler {
  readonly faults: string[] = []
  readonly holes: ValueExpression[] = []
  readonly #hasSecrets: boolean

  /** @param hasSecrets then no value of a call may look as what stands for one */
  constructor(hasSecrets: boolean) {
    this.#hasSecrets = hasSecrets
  }

  write(value: unknown): Write {
    if (Array.isArray(value)) return listOf((value as unknown[]).map((item) => this.write(item)))
    if (isObject(value)) return this.#object(value)
    if (typeof value === 'string' && hasHoles(value)) return this.#text(value)
    const json = JSON.stringify(value)
    return () => json
  }

  #object(value: Record<string, unknown>): Write {
    const members = Object.entries(value).map(([key, member]) => {
      if (hasHoles(key))
        this.faults.push(`has a hole in the key ${JSON.stringify(key)}: only values have holes`)
      const first = `{${JSON.stringify(key)}:`
      return { first, later: `,${first.slice(1)}`, write: this.write(member) }
    })
    return (run) => {
      let text = ''
      for (const { first, later, write } of members) {
        const json = write(run)
        if (json !== null) text += (text === '' ? first : later) + json
      }
      return text === '' ? '{}' : `${text}}`
    }
  }

  #text(text: string): Write {
    const { template, fault } = parseTemplate(text)
    if (fault !== null) {
      this.faults.push(`has a fault: ${fault}`)
      return () => null
    }
    this.holes.push(...holesOf(template))
    const hole = onlyHoleOf(template)
    const clean = this.#hasSecrets
    if (hole === null) return (run) => quoted(filled(template, run, clean))
    const { written } = hole
    const evaluated: Write = (run) => {
      const value = valueOf(hole, run)
      return value === absent ? null : jsonText(hole, value, run)
    }
    const write: Write = written === null ? evaluated : (run) => written(run) ?? evaluated(run)
    if (!clean || secretIn(hole.text) !== null) return write
    return (run) => {
      const json = write(run)
      return json === null ? null : jsonWithoutMarks(json)
    }
  }
}

function listOf(items: readonly Write[]): Write {
  return (run) => {
    const texts = items.map((write) => write(run)).filter((json) => json !== null)
    return `[${texts.join(',')}]`
  }
}

function filled({ parts }: TextTemplate, run: Run, clean: boolean): string {
  let text = ''
  for (const part of parts) {
    if (typeof part === 'string') text += part
    else {
      const value = textOf(part, valueOf(part, run), run)
      text += clean && secretIn(part.text) === null ? withoutMarks(value) : value
    }
  }
  return text
}
