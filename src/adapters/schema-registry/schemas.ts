import { existsSync, readFileSync } from 'node:fs'
import avro from 'avsc'
import type { Type, schema } from 'avsc'
import { compileWriter } from './avro-writer.ts'
import type { WriteRecord } from './avro-writer.ts'

/** One of the files in `schemas/`: as JSON to register, as a compiled type to read by, and as a writer. */
export interface RecordSchema {
  /** `postrider.AnalyticsCall` */
  name: string
  json: schema.RecordType
  type: Type
  /** The schema as it is, and as it was before each of its last fields with a default was added; the newest first. */
  versions: readonly SchemaVersion[]
  write: WriteRecord<object>
}

export interface SchemaVersion {
  type: Type
  /** Of the fields that it does not have. */
  defaults: Readonly<Record<string, unknown>>
}

const files = {
  analyticsCall: 'analytics-call',
  retryDelivery: 'retry-delivery',
  deadLetter: 'dead-letter',
  deliveryEvent: 'delivery-event',
  settingsEvent: 'settings-event',
  membership: 'membership',
  erasure: 'erasure',
  suppression: 'suppression',
} as const

export type RecordName = keyof typeof files

const compiled = new Map<RecordName, RecordSchema>()

/** Reads and compiles a schema once per process. Times are plain numbers of milliseconds, unions are not wrapped. */
export function recordSchema(name: RecordName): RecordSchema {
  let found = compiled.get(name)
  if (found === undefined) {
    const json = JSON.parse(
      readFileSync(new URL(`${files[name]}.avsc`, folder()), 'utf8'),
    ) as schema.RecordType
    const type = typeOf(json)
    const written = { name: type.name!, json, type, write: compileWriter(type) }
    let versions: SchemaVersion[] | undefined
    found = {
      ...written,
      // Few records are read without the registry.
      get versions() {
        return (versions ??= versionsOf(json, type))
      },
    }
    compiled.set(name, found)
  }
  return found
}

const typeOf = (json: schema.RecordType): Type =>
  avro.Type.forSchema(json, { wrapUnions: 'never', omitRecordMethods: true })

function versionsOf(json: schema.RecordType, type: Type): SchemaVersion[] {
  const versions: SchemaVersion[] = [{ type, defaults: {} }]
  let defaults: Record<string, unknown> = {}
  for (let length = json.fields.length; length > 0; length--) {
    const last = json.fields[length - 1]!
    if (last.default === undefined) break
    defaults = { ...defaults, [last.name]: last.default }
    versions.push({ type: typeOf({ ...json, fields: json.fields.slice(0, length - 1) }), defaults })
  }
  return versions
}

/** `schemas/` of the package: sources and the built files lie at different depths below it. */
function folder(): URL {
  for (let at = new URL('./', import.meta.url); at.pathname !== '/'; at = new URL('../', at)) {
    const candidate = new URL('schemas/', at)
    if (existsSync(new URL(`${files.analyticsCall}.avsc`, candidate))) return candidate
  }
  throw new Error('the package has no schemas folder')
}
