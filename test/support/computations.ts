import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pino from 'pino'
import { openComputations, type OpenComputations } from '../../src/operators/audiences/kafka.ts'
import { readList } from '../../src/operators/audiences/read-list.ts'
import type { SyncReport } from '../../src/operators/audiences/sync.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import type { ComputationKind } from '../../src/core/audience/computations.ts'
import type { Deployment, LogLine } from './deployment/deployment.ts'
import { temporaryFolder } from './deployment/rig.ts'

/** Audiences and computed traits of a deployment, as the commands use them. */
export interface ComputationsUnderTest {
  /** STORE_PATH. */
  folder: string
  /** The view's file. */
  file: string
  log: LogLine[]
  open: OpenComputations
  create(kind: ComputationKind, id: string, name: string): Promise<void>
  /** A full sync: a line for each. */
  sync(kind: ComputationKind, id: string, lines: readonly string[], allowEmpty?: boolean): Promise<SyncReport>
  close(): Promise<void>
}

/** With a store of its own, or that of `folder`. `before` is awaited before each command to the settings. */
export async function computationsOf(
  t: TestContext,
  deployment: Deployment,
  folder?: string,
  before: (command: SettingsCommand) => Promise<void> = async () => {},
): Promise<ComputationsUnderTest> {
  const storePath = folder ?? (await temporaryFolder(t))
  const lines: LogLine[] = []
  const { config, kafka, settings, topics, codecs } = deployment
  const open = await openComputations({
    config: { ...config, storePath },
    kafka,
    topics,
    codecs,
    log: pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line) as LogLine) }),
    settings: {
      get state() {
        return settings.state
      },
      catchUp: () => settings.catchUp(),
      async execute(command) {
        await before(command)
        return settings.execute(command)
      },
    },
  })
  let closing: Promise<void> | null = null
  const close = () => (closing ??= Promise.resolve(open.close()))
  deployment.endFirst(close)
  return {
    folder: storePath,
    file: join(storePath, `${topics.memberships}.sqlite`),
    log: lines,
    open,
    create: async (kind, id, name) =>
      void (await settings.execute({ type: 'create_computation', kind, id, name, sourceId: 'shop' })),
    sync: (kind, id, list, allowEmpty = false) =>
      open.sync(kind, id, 'full', readList(bytesOf(list.join('\n')), kind === 'audience' ? 'id' : 'value'), {
        allowEmpty,
      }),
    close,
  }
}

/** As a file is read: in pieces that end anywhere. */
export async function* bytesOf(text: string | Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text as string)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
