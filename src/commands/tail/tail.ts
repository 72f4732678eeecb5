import { Command } from 'commander'
import type { TailLine, TailSink } from '../../console/live-tail/live-tail.ts'
import { tailText } from '../../console/live-tail/tail-text.ts'
import { settingIn } from '../../console/setting-kind.ts'
import { sourceKind } from '../../console/sources.ts'
import { callTypes } from '../../core/call/analytics-call.ts'
import { runAction, stopSignal } from '../context.ts'
import { namesOf, repeatable } from '../flags.ts'
import { print } from '../output.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'
import { describeLine } from './describe.ts'
import { openLiveTail } from './open-live-tail.ts'

interface TailFlags {
  types?: string[]
  events?: string[]
  user?: string[]
  json?: true
}

export function tailCommand(): Command {
  return new Command('tail')
    .argument('<source>', 'id of the source')
    .description(
      'Shows the calls of a source as they come in, from now on, until Ctrl-C. At most 100 a second are shown, and ' +
        'it says how many were left out. Each line ends with the call’s messageId, which `postrider why` takes. It reads Kafka by a consumer of its own: nothing waits for it.',
    )
    .addOption(
      repeatable(
        '--types <type>',
        `only calls of these types: ${callTypes.join(', ')}; repeatable, or separated by commas`,
      ),
    )
    .addOption(
      repeatable('--events <name>', 'only track calls of this event, written exactly so; repeatable'),
    )
    .addOption(repeatable('--user <id>', 'only calls of this userId or anonymousId; repeatable'))
    .option('--json', 'one JSON object a line, in the form of the admin API')
    .action(runAction(tail))
}

/** What a terminal, or a pipe, has waiting at most, in bytes. */
const maxBuffered = 256 << 10

async function tail(sourceId: string, flags: TailFlags, command: Command): Promise<void> {
  const { events = [], user = [], json } = flags
  const types = namesOf('--types', flags.types, callTypes) ?? []
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
    const filter = { sourceId, types, events, users: user }
    await withOpen(openLiveTail(context), async (liveTail) => {
      const { ended } = await liveTail.begin(filter, sink, AbortSignal.any([signal, gone.signal]))
      process.stderr.write(`waiting for calls of ${sourceId}…\n`)
      await ended
    })
  })
}
