// What `postrider events` prints.
import type { z } from 'zod'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { count, printable, table } from '../../cli/terminal.ts'
import type { eventFieldsSchema, eventListSchema } from './operations.ts'

type EventList = z.output<typeof eventListSchema>
type EventFields = z.output<typeof eventFieldsSchema>

const listShape: CommandShape = {
  text({ sourceId, events, knownSince, omittedCalls }: EventList) {
    if (events.length === 0 && omittedCalls === 0) return `no call of ${sourceId} is in Kafka`
    const rows = events.map((event) => [
      event.type,
      event.name === null ? '-' : printable(event.name),
      event.calls,
      event.firstSeen,
      event.lastSeen,
      event.fields,
    ])
    return [
      table(['type', 'name', 'calls', 'first seen', 'last seen', 'fields'], rows),
      sinceText(knownSince),
      ...(omittedCalls === 0 ? [] : [`${count(omittedCalls, 'more call')} of no event above`]),
    ].join('\n')
  },
}

const showShape: CommandShape = {
  text({ type, name, calls, firstSeen, lastSeen, knownSince, fields, omittedFields }: EventFields) {
    const rows = fields.map(({ path, calls: had, kinds }) => [
      printable(path),
      `${Math.floor((had / calls) * 100)}%`,
      kinds.map(({ kind }) => kind).join(', '),
    ])
    return [
      `${printable(name === null ? type : `${type} ${name}`)}: ${count(calls, 'call')}, ${firstSeen} to ${lastSeen}`,
      ...(rows.length === 0 ? ['without any field'] : [table(['field', 'in', 'types'], rows)]),
      sinceText(knownSince),
      ...(omittedFields === 0
        ? []
        : [`fields beyond the bound: ${omittedFields}, one for each call that had it`]),
    ].join('\n')
  },
}

const sinceText = (knownSince: string | null): string => `counted since ${knownSince}`

/** A document, for a file. */
const exportShape: CommandShape = { text: (body: object) => JSON.stringify(body, null, 2) }

export const catalogueShapes: Readonly<Record<string, CommandShape>> = {
  listEvents: listShape,
  showEvent: showShape,
  exportEvents: exportShape,
}
