import type { types } from 'avsc'
import { headerBytes } from './record-reader.ts'
import { recordSchema } from './schemas.ts'

const { symbols } = (recordSchema('deliveryEvent').type as types.RecordType).field('type')!
  .type as types.EnumType
const reportPlaces = [symbols.indexOf('collected'), symbols.indexOf('heartbeat')]

/**
 * Whether a record of the ledger is a heartbeat or a summary of what came in: for readers of deliveries, which pass it
 * over without decoding it. `type` is the first field, and its symbols keep their places in every version.
 */
export const isReport = (value: Buffer | null): boolean =>
  value !== null && value.length > headerBytes && reportPlaces.includes(value[headerBytes]! >> 1)
