// What `audiences` and `traits` have in common.
import { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import { boundHeap } from '../../adapters/bound-heap.ts'
import type { MemberBatch } from '../../console/computations/memberships.ts'
import { computationIn, type SyncReport } from '../../console/computations/sync.ts'
import { computationsOf, computationView } from '../../console/computations/view.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import { runAction, stopSignal } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printable, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'
import { addIdCommand, addListCommand, type Texts } from '../settings/settings-actions.ts'
import { withSettings } from '../settings/with-settings.ts'
import { withOpen } from '../with-open.ts'
import { openComputations, type OpenComputations } from './open-computations.ts'
import { listIn, syncProgress } from './sync-input.ts'

export interface Words {
  kind: ComputationKind
  one: 'an audience' | 'a computed trait'
  /** What it is created without. */
  content: string
  description: string
  show: Texts
  sync: Texts & { allowEmpty: string }
  /** What --notify of delete does. */
  notify: string
}

/** `addChange` adds the subcommand that only one of them has in its form. */
export function computationCommand(words: Words, addChange: (command: Command) => void): Command {
  const { kind, one, content, description, show, sync, notify } = words
  const command = new Command(`${kind}s`).description(description)
  command
    .command('create')
    .summary(`add ${one}`)
    .description(`Adds ${one} without ${content}. An id is never changed or reused.`)
    .requiredOption('--id <id>', '1-64 of a-z, 0-9, "_" and "-"')
    .requiredOption('--name <name>', 'for people; its snake_case form is the trait')
    .requiredOption('--source <id>', 'whose destinations are notified')
    .option('--json', 'as JSON')
    .action(runAction((flags: CreateFlags, self: Command) => create(kind, flags, self)))
  addListCommand(command, {
    ...computationsOf(kind),
    none: 'none',
    headings: ['ID', 'NAME', 'PROPERTY', 'SOURCE', 'LAST SYNC'],
    row: ({ id, name, key, sourceId, lastSync }) => [id, name, key, sourceId, lastSync?.finishedAt ?? '-'],
  })
  addIdCommand(command, 'show', show, (id, flags, self) => showOne(kind, id, flags, self))
  command
    .command('sync <id> [file]')
    .summary(sync.summary)
    .description(sync.description)
    .option('--allow-empty', sync.allowEmpty)
    .option('--json', 'as JSON')
    .action(
      runAction((id: string, file: string | undefined, flags: SyncFlags, self: Command) =>
        syncAction({ kind, id, mode: 'full' }, () => listIn(file ?? '-', kind), flags, self),
      ),
    )
  addChange(command)
  command
    .command('delete <id>')
    .summary(`delete ${one}`)
    .description(`Deletes ${one}. Its id cannot be used again.`)
    .option('--notify', notify)
    .option('--json', 'as JSON')
    .action(runAction((id: string, flags: DeleteFlags, self: Command) => remove(kind, id, flags, self)))
  return command
}

interface CreateFlags extends JsonFlag {
  id: string
  name: string
  source: string
}

async function create(kind: ComputationKind, flags: CreateFlags, command: Command): Promise<void> {
  const { id, name, source, json } = flags
  await withSettings(command, async (settings) => {
    await settings.execute({ type: 'create_computation', kind, id, name, sourceId: source })
    const made = computationIn(settings, kind, id)
    if (json) printJson(computationView(made))
    else print(`${kind} "${id}" created; users get it as the property ${printable(made.key)}`)
  })
}

const usersOf = { audience: 'members', trait: 'users with a value' } as const

async function showOne(
  kind: ComputationKind,
  id: string,
  { json }: JsonFlag,
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations, settings) => {
    const view = computationView(computationIn(settings, kind, id))
    const count = await computations.count(kind, id)
    if (json) return printJson({ ...view, count })
    const fields: [label: string, value: string][] = [
      ['id', view.id],
      ['name', printable(view.name)],
      ['property', printable(view.key)],
      ['source', view.sourceId],
      [usersOf[kind], String(count)],
      ['last sync', view.lastSync?.finishedAt ?? '-'],
    ]
    if (view.openSync)
      fields.push([
        'open sync',
        `${view.openSync.syncId}: running, or interrupted; the next sync finishes it first`,
      ])
    const width = Math.max(...fields.map(([label]) => label.length))
    for (const [label, value] of fields) print(`${label.padEnd(width)}  ${value}`)
  })
}

export interface SyncFlags extends JsonFlag {
  allowEmpty?: true
}

export async function syncAction(
  { kind, id, mode }: { kind: ComputationKind; id: string; mode: 'full' | 'change' },
  list: () => AsyncIterable<MemberBatch>,
  { json, allowEmpty }: SyncFlags,
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations, settings) => {
    computationIn(settings, kind, id)
    const report = await withProgress((bar) =>
      computations.sync(kind, id, mode, list(), {
        onProgress: syncProgress(bar),
        allowEmpty: allowEmpty ?? false,
      }),
    )
    if (json) printJson({ id, ...report })
    else print(sentence(kind, id, report))
  })
}

interface DeleteFlags extends JsonFlag {
  notify?: true
}

async function remove(
  kind: ComputationKind,
  id: string,
  { notify, json }: DeleteFlags,
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations) => {
    const { notified } = await withProgress((bar) =>
      computations.remove(kind, id, notify ?? false, { onProgress: syncProgress(bar) }),
    )
    if (json) printJson({ id, deleted: true, notified })
    else print(`${kind} "${id}" deleted${notify ? `; ${notified} users were sent that they left` : ''}`)
  })
}

/** A sync that is stopped stays open: what was written is finished by the next one. */
async function withComputations(
  command: Command,
  use: (computations: OpenComputations, settings: SettingsLog) => Promise<void>,
): Promise<void> {
  boundHeap()
  await withSettings(command, async (settings, { context }) => {
    const open = await openComputations({ ...context, settings }, stopSignal())
    await withOpen(open, (computations) => use(computations, settings))
  })
}

function sentence(kind: ComputationKind, id: string, { given, entered, left, resumed }: SyncReport): string {
  const before = resumed === 0 ? '' : `; ${resumed} calls of a sync that was cut off were sent again first`
  const [came, went] = kind === 'audience' ? ['joined', 'left'] : ['got a new value', 'lost theirs']
  return `${kind} "${id}": ${given} users read, ${entered} ${came}, ${left} ${went}${before}`
}
