// What `postrider tail` has beside its operation.
import type { z } from 'zod'
import type { callSchema, lineSchema } from './operations.ts'
import { operationOf } from '../operations.ts'
import { optionsOf, type CommandShape } from '../../cli/operations/operation-command.ts'
import { performStream } from '../../cli/operations/session.ts'
import { io } from '../../cli/io.ts'
import { count, print, printable, printAside } from '../../cli/terminal.ts'

type Line = z.output<typeof lineSchema>
type Call = z.output<typeof callSchema>

const maxShownLength = 100
/** What a terminal, or a pipe, has waiting at most, in bytes. */
const maxBuffered = 256 << 10

export const tailShape: CommandShape = {
  async run(asked, session, { json }) {
    const operation = operationOf('tailSource')
    const { stream } = await performStream(operation, asked, optionsOf(operation, session, tailShape))
    const gone = new AbortController()
    const { stdout } = io()
    // The other end of a pipe, such as `head`, has what it wanted.
    stdout.once('error', () => gone.abort())
    const lines = {
      hasRoom: () => stdout.writableLength < maxBuffered,
      write: (text: string) => (json ? print(text) : describeLine(JSON.parse(text) as Line)),
    }
    const { ended } = await stream(lines, AbortSignal.any([session.signal, gone.signal]))
    printAside(`waiting for calls of ${asked.params!.id}…`)
    await ended
  },
}

/** A call goes to stdout, a line each; what was left out goes to stderr. */
function describeLine(line: Line): void {
  if ('call' in line) print(callLine(line.call))
  else if ('sampled' in line || 'dropped' in line) {
    const { sampled, dropped } = line
    if (sampled)
      printAside(`… ${count(sampled.leftOut, 'more call')}: ${sampled.shownPerSecond} a second are shown`)
    if (dropped) printAside(`… ${count(dropped.leftOut, 'more call')}: the output is read too slowly`)
  }
}

/** `12:03:04.123  track     u-1  Order Completed  {"total":30}  1f0f5a0e-…`: the messageId is what `why` takes. */
export function callLine(call: Call): string {
  const { type, userId, anonymousId, event, name, groupId, previousId, properties, traits, receivedAt } = call
  const time = new Date(receivedAt ?? '')
  const what = event ?? name ?? (type === 'group' ? groupId : type === 'alias' ? previousId : undefined)
  const parts = [
    Number.isNaN(time.getTime()) ? '-' : time.toISOString().slice(11, 23),
    type.padEnd(8),
    userId ?? anonymousId ?? '-',
    what,
    shortened(properties ?? traits),
    call.messageId,
  ]
  return printable(parts.filter((part) => part !== undefined && part !== '').join('  '))
}

function shortened(map: object | undefined): string | undefined {
  if (map === undefined || Object.keys(map).length === 0) return undefined
  const json = JSON.stringify(map)
  return json.length > maxShownLength ? `${json.slice(0, maxShownLength)}…` : json
}
