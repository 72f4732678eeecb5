import { Command, InvalidArgumentError, Option } from 'commander'
import type { TailLine, TailSink } from '../../console/live-tail/live-tail.ts'
import { tailText } from '../../console/live-tail/tail-text.ts'
import { settingIn } from '../../console/setting-kind.ts'
import { sourceKind } from '../../console/sources.ts'
import { callTypes, type CallType } from '../../core/call/analytics-call.ts'
import { runAction, stopSignal } from '../context.ts'
import { print } from '../output.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'
import { describeLine } from './describe.ts'
import { openLiveTail } from './open-live-tail.ts'

interface TailFlags {
  type?: CallType[]
  event?: string[]
  user?: string[]
  json?: true
}

const several = (value: string, before: string[] = []): string[] => [...before, value]

export function tailCommand(): Command {
  const type = new Option('--type <type>', `${callTypes.join(', ')}; can be repeated`)
  type.argParser((value: string, before?: CallType[]) => {
    if (!(callTypes as readonly string[]).includes(value))
      throw new InvalidArgumentError(`It takes one of ${callTypes.join(', ')}.`)
    return [...(before ?? []), value as CallType]
  })
  return new Command('tail')
    .argument('<source>', 'id of the source')
    .description(
      'Shows the calls of a source as they come in, from now on, until Ctrl-C. At most 100 a second are shown, and ' +
        'it says how many were left out. It reads Kafka by a consumer of its own: nothing waits for it.',
    )
    .addOption(type)
    .option('--event <name>', 'name of a track event; can be repeated', several)
    .option('--user <id>', 'a userId or anonymousId; can be repeated', several)
    .option('--json', 'one JSON object a line, in the form of the admin API')
    .action(runAction(tail))
}

/** What a terminal, or a pipe, has waiting at most, in bytes. */
const maxBuffered = 256 << 10

async function tail(sourceId: string, flags: TailFlags, command: Command): Promise<void> {
  const { type = [], event = [], user = [], json } = flags
  await withSettings(command, async ({ state }, { context }) => {
    settingIn(sourceKind, state, sourceId)
    const signal = stopSignal()
    const gone = new AbortController()
    // The other end of a pipe, such as `head`, has what it wanted.
    process.stdout.once('error', () => gone.abort())
    const sink: TailSink = {
      hasRoom: () => process.stdout.writableLength < maxBuffered,
      write: (line: TailLine) => (json ? print(tailText(line)) : describeLine(line)),
    }
    const filter = { sourceId, types: type, events: event, users: user }
    await withOpen(openLiveTail(context), async (liveTail) => {
      const { ended } = await liveTail.begin(filter, sink, AbortSignal.any([signal, gone.signal]))
      process.stderr.write(`waiting for calls of ${sourceId}…\n`)
      await ended
    })
  })
}
