// What `audiences` and `traits` have in common.
import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/settings-log.ts'
import { boundHeap } from '../../adapters/bound-heap.ts'
import type { MemberBatch } from '../../console/computations/memberships.ts'
import { computationIn, type SyncReport } from '../../console/computations/sync.ts'
import { computationView } from '../../console/computations/view.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import { stopSignal } from '../context.ts'
import { print, printable, printJson, printTable } from '../output.ts'
import type { JsonFlag } from '../settings/settings-actions.ts'
import { settingsSession } from '../settings/settings-session.ts'
import { openComputations, type OpenComputations } from './open-computations.ts'
import { syncProgress } from './sync-input.ts'

const commandOf = { audience: 'audiences', trait: 'traits' } as const
const usersOf = { audience: 'members', trait: 'users with a value' } as const

export async function createAction(
  kind: ComputationKind,
  { id, name, source, json }: { id: string; name: string; source: string } & JsonFlag,
  command: Command,
): Promise<void> {
  await settingsSession(command).run(async (settings) => {
    await settings.execute({ type: 'create_computation', kind, id, name, sourceId: source })
    const made = computationIn(settings, kind, id)
    if (json) printJson(computationView(made))
    else print(`${kind} "${id}" created; users get it as the property ${printable(made.key)}`)
  })
}

export async function listAction(kind: ComputationKind, { json }: JsonFlag, command: Command): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const views = [...state.computations.values()]
      .filter((each) => each.kind === kind && !each.deleted)
      .map(computationView)
    if (json) return views.forEach(printJson)
    if (views.length === 0)
      return print(`none; \`postrider ${commandOf[kind]} create --help\` shows how to add one`)
    printTable(
      ['ID', 'NAME', 'PROPERTY', 'SOURCE', 'LAST SYNC'],
      views.map(({ id, name, key, sourceId, lastSync }) => [
        id,
        name,
        key,
        sourceId,
        lastSync?.finishedAt ?? '-',
      ]),
    )
  })
}

export async function showAction(
  kind: ComputationKind,
  id: string,
  { json }: JsonFlag,
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations, settings) => {
    const view = computationView(computationIn(settings, kind, id))
    const count = await computations.count(kind, id)
    if (json) return printJson({ ...view, count })
    print(`id         ${view.id}`)
    print(`name       ${printable(view.name)}`)
    print(`property   ${printable(view.key)}`)
    print(`source     ${view.sourceId}`)
    print(`${usersOf[kind]}  ${count}`)
    print(`last sync  ${view.lastSync?.finishedAt ?? '-'}`)
    if (view.openSync)
      print(`open sync  ${view.openSync.syncId}: running, or interrupted; the next sync finishes it first`)
  })
}

export async function syncAction(
  { kind, id, mode }: { kind: ComputationKind; id: string; mode: 'full' | 'change' },
  list: () => AsyncIterable<MemberBatch>,
  { json, allowEmpty }: JsonFlag & { allowEmpty?: true },
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations, settings) => {
    computationIn(settings, kind, id)
    const { onProgress, stop } = syncProgress()
    try {
      const options = { onProgress, allowEmpty: allowEmpty ?? false }
      const report = await computations.sync(kind, id, mode, list(), options)
      stop()
      if (json) printJson({ id, ...report })
      else print(sentence(kind, id, report))
    } finally {
      stop()
    }
  })
}

export async function deleteAction(
  kind: ComputationKind,
  id: string,
  { notify, json }: JsonFlag & { notify?: true },
  command: Command,
): Promise<void> {
  await withComputations(command, async (computations) => {
    const { onProgress, stop } = syncProgress()
    try {
      const { notified } = await computations.remove(kind, id, notify ?? false, { onProgress })
      stop()
      if (json) printJson({ id, deleted: true, notified })
      else print(`${kind} "${id}" deleted${notify ? `; ${notified} users were sent that they left` : ''}`)
    } finally {
      stop()
    }
  })
}

/** A sync that was told to stop stays open: what was written is finished by the next one. */
async function withComputations(
  command: Command,
  use: (computations: OpenComputations, settings: SettingsLog) => Promise<void>,
): Promise<void> {
  const session = settingsSession(command)
  boundHeap()
  await session.run(async (settings) => {
    const { config, log } = session.context
    const computations = await openComputations(
      { config, kafka: session.context.kafka(), log, settings },
      stopSignal(),
    )
    try {
      await use(computations, settings)
    } finally {
      await computations.close()
    }
  })
}

function sentence(kind: ComputationKind, id: string, { given, entered, left, resumed }: SyncReport): string {
  const before = resumed === 0 ? '' : `; ${resumed} calls of a sync that was cut off were sent again first`
  const [came, went] = kind === 'audience' ? ['joined', 'left'] : ['got a new value', 'lost theirs']
  return `${kind} "${id}": ${given} users read, ${entered} ${came}, ${left} ${went}${before}`
}
