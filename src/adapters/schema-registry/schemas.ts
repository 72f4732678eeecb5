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
  write: WriteRecord<object>
}

const files = {
  analyticsCall: 'analytics-call',
  retryDelivery: 'retry-delivery',
  deadLetter: 'dead-letter',
  deliveryEvent: 'delivery-event',
  settingsEvent: 'settings-event',
  membership: 'membership',
  erasure: 'erasure',
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
    const type = avro.Type.forSchema(json, { wrapUnions: 'never', omitRecordMethods: true })
    found = { name: type.name!, json, type, write: compileWriter(type) }
    compiled.set(name, found)
  }
  return found
}

/** `schemas/` of the package: sources and the built files lie at different depths below it. */
function folder(): URL {
  for (let at = new URL('./', import.meta.url); at.pathname !== '/'; at = new URL('../', at)) {
    const candidate = new URL('schemas/', at)
    if (existsSync(new URL(`${files.analyticsCall}.avsc`, candidate))) return candidate
  }
  throw new Error('the package has no schemas folder')
}
