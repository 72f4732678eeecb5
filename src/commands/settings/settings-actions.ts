// What `sources` and `destinations` have in common: listing, showing, turning on and off.
import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { runAction } from '../context.ts'
import { print, printJson, printTable } from '../output.ts'
import { settingsSession } from './settings-session.ts'

export interface JsonFlag {
  json?: true
}

/** One kind of setting, `V` is one of it as it is shown. */
export interface Kind<V extends { id: string }> {
  name: 'source' | 'destination'
  /** In the order of their creation. */
  all(state: SettingsState): V[]
  /** Throws `not_found`. */
  one(state: SettingsState, id: string): V
  headings: readonly string[]
  row(view: V): (string | number)[]
  lines(view: V): string[]
}

export function addListCommand<V extends { id: string }>(command: Command, kind: Kind<V>): void {
  const all = `all ${kind.name}s`
  command
    .command('list')
    .summary(all)
    .description(`All ${kind.name}s.`)
    .option('--json', 'one JSON object a line')
    .action(
      runAction(async ({ json }: JsonFlag, self: Command) => {
        await settingsSession(self).run(({ state }) => {
          const views = kind.all(state)
          if (json) views.forEach(printJson)
          else if (views.length === 0)
            print(`no ${kind.name}s; \`postrider ${kind.name}s create --help\` shows how to add one`)
          else printTable(kind.headings, views.map(kind.row))
        })
      }),
    )
}

/** `texts`: what the two of them do, as a summary and as a sentence. */
export function addTurnCommands<V extends { id: string }>(
  command: Command,
  kind: Kind<V>,
  texts: Record<'enable' | 'disable', { summary: string; description: string }>,
): void {
  for (const turn of ['enable', 'disable'] as const)
    command
      .command(`${turn} <id>`)
      .summary(texts[turn].summary)
      .description(texts[turn].description)
      .option('--json', 'as JSON')
      .action(
        runAction(async (id: string, flags: JsonFlag, self: Command) => {
          await settingsSession(self).run(async (settings) => {
            await settings.execute({ type: `${turn}_${kind.name}`, id })
            say(kind, settings, id, flags, `${kind.name} "${id}" is ${turn}d`)
          })
        }),
      )
}

export async function showAction<V extends { id: string }>(
  kind: Kind<V>,
  id: string,
  { json }: JsonFlag,
  command: Command,
): Promise<void> {
  await settingsSession(command).run(({ state }) => {
    const view = kind.one(state, id)
    if (json) printJson(view)
    else kind.lines(view).forEach(print)
  })
}

/** What a change led to: as JSON, or in a sentence. */
export function say<V extends { id: string }>(
  kind: Kind<V>,
  { state }: Pick<SettingsLog, 'state'>,
  id: string,
  { json }: JsonFlag,
  sentence: string,
): void {
  if (json) printJson(kind.one(state, id))
  else print(sentence)
}
