import { Ajv, type ErrorObject, type Options } from 'ajv'
import { parseJson } from '../../core/json/parse-json.ts'
import { maxViolations, type CompileSchema, type SchemaFault } from '../../core/tracking-plan/plan-check.ts'
import type { JsonSchema } from '../../core/tracking-plan/tracking-plan.ts'
import { messageOf } from '../../errors.ts'
import { fitsSurely, fittingRule } from './fitting-text.ts'
import { formatNames, formats } from './formats.ts'
import { linearRegExp, namesIn, schemaFaults } from './schema-rules.ts'

const options: Options = {
  strict: true,
  // `minimum` without a type says nothing of texts, as JSON Schema has it.
  strictTypes: false,
  strictTuples: false,
  strictRequired: false,
  allErrors: true,
  // Else every object would have a property `constructor`.
  ownProperties: true,
  messages: false,
  logger: false,
  formats,
  code: { regExp: Object.assign((pattern: string) => linearRegExp(pattern), { code: 'linearRegExp' }) },
}

function newAjv(more: Options = {}): Ajv {
  const ajv = new Ajv({ ...options, ...more })
  // Ajv compares each item with each.
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not have equal items' },
    validate: (isUnique: boolean, items: unknown[]) =>
      !isUnique || new Set(items.map((item) => JSON.stringify(item, sorted))).size === items.length,
  })
  return ajv
}

/** Objects are equal whatever the order of their keys. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** For checks of schemas that are to be set; made when the first one is. */
let strict: Ajv | null = null
/** For schemas that were set, and so were checked. */
let quick: Ajv | null = null

/** Why a schema cannot stand in a plan, with the place in it; null where it can. */
export function schemaRefusal(schema: JsonSchema): string | null {
  strict ??= newAjv({ messages: true })
  const ajv = strict
  const faults = schemaFaults(schema, (name) => Object.hasOwn(ajv.RULES.keywords, name), formatNames)
  if (faults.length > 0) return faults.join('; ')
  if (ajv.validateSchema(schema) !== true)
    return [...new Set((ajv.errors ?? []).map(invalidText))].slice(0, 20).join('; ')
  try {
    compiled(ajv, schema)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

const invalidText = ({ instancePath, message }: ErrorObject): string =>
  `${instancePath.slice(1).replaceAll('/', '.') || 'it'} ${message}`

/** Ajv keeps what it has compiled; a plan that is changed again and again would fill the memory. */
function compiled(ajv: Ajv, schema: JsonSchema) {
  try {
    return ajv.compile(schema)
  } finally {
    if (typeof schema === 'object') ajv.removeSchema(schema)
  }
}

/** Nearly all texts fit, and are not parsed for it. What ajv makes of a schema is made for the first that does not. */
export const compileSchema: CompileSchema = (schema) => {
  const rule = fittingRule(schema)
  // A schema that ajv cannot use is said to be so before the first call.
  let faultsIn = rule === null ? thorough(schema) : null
  return (text) =>
    rule !== null && fitsSurely(rule, text) ? noFaults : (faultsIn ??= thorough(schema))(parseJson(text))
}

function thorough(schema: JsonSchema): (value: unknown) => readonly SchemaFault[] {
  quick ??= newAjv({ validateSchema: false })
  const validate = compiled(quick, schema)
  const names = namesIn(schema)
  return (value) => {
    if (validate(value)) return noFaults
    const errors = validate.errors ?? []
    // They hold parts of the call.
    validate.errors = null
    return faultsOf(errors, names)
  }
}

const noFaults: readonly SchemaFault[] = []
/** Of one call's errors, of which thousands can be alike. */
const maxLookedAt = 1_000
/** What one of several schemas found says less than that none of them fits. */
const withinChoice = /\/(anyOf|oneOf|contains|not|propertyNames)\/|\/if\//

function faultsOf(errors: readonly ErrorObject[], names: ReadonlySet<string>): SchemaFault[] {
  const faults = new Map<string, SchemaFault>()
  for (const error of errors.slice(0, maxLookedAt)) {
    if (error.keyword === 'if' || withinChoice.test(error.schemaPath)) continue
    const path = [...shownPath(error.instancePath, names), ...lastStep(error)]
    faults.set(JSON.stringify([path, error.keyword]), { path, rule: error.keyword })
    if (faults.size === maxViolations) break
  }
  // All of them were left out, so whatever they lie in is what is wrong.
  if (faults.size === 0) return [{ path: [], rule: errors.at(-1)?.keyword ?? 'schema' }]
  return [...faults.values()]
}

/** Names that the schema does not say, and places in lists, are `*`. */
const shownPath = (instancePath: string, names: ReadonlySet<string>): string[] =>
  instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (names.has(step) ? step : '*'))

/** An error about a property that is missing, or should not be there, stands at the object. */
function lastStep({ keyword, params }: ErrorObject): string[] {
  if (keyword === 'required' || keyword === 'dependencies')
    return [(params as { missingProperty: string }).missingProperty]
  return keyword === 'additionalProperties' || keyword === 'propertyNames' ? ['*'] : []
}
