// What the commands of settings have in common: listing, showing, turning on and off.
import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printJson, printTable } from '../output.ts'
import { withSettings } from './with-settings.ts'

/** What a subcommand does, as a summary and as a sentence. */
export interface Texts {
  summary: string
  description: string
}

/** One kind of setting that can be listed, `V` is one of it as it is shown. */
export interface ListedSetting<V extends { id: string }> {
  /** For people: `sources`. */
  plural: string
  /** What a list without any begins with. */
  none: string
  /** In the order of their creation. */
  all(state: SettingsState): V[]
  headings: readonly string[]
  row(view: V): (string | number)[]
}

/** One kind of setting that can be shown, enabled and disabled, too. */
export interface Kind<V extends { id: string }> extends ListedSetting<V> {
  name: 'source' | 'destination'
  /** Throws `not_found`. */
  one(state: SettingsState, id: string): V
  lines(view: V): string[]
}

export function addListCommand<V extends { id: string }>(command: Command, kind: ListedSetting<V>): void {
  command
    .command('list')
    .summary(`all ${kind.plural}`)
    .description(`All ${kind.plural}.`)
    .option('--json', 'one JSON object a line')
    .action(
      runAction(async ({ json }: JsonFlag, self: Command) => {
        await withSettings(self, ({ state }) => {
          const views = kind.all(state)
          if (json) views.forEach(printJson)
          else if (views.length === 0)
            print(`${kind.none}; \`postrider ${command.name()} create --help\` shows how to add one`)
          else printTable(kind.headings, views.map(kind.row))
        })
      }),
    )
}

/** A subcommand that takes an id, and does what `action` does. */
export function addIdCommand(
  command: Command,
  name: string,
  { summary, description }: Texts,
  action: (id: string, flags: JsonFlag, self: Command) => Promise<void>,
): void {
  command
    .command(`${name} <id>`)
    .summary(summary)
    .description(description)
    .option('--json', 'as JSON')
    .action(runAction(action))
}

export function addShowCommand<V extends { id: string }>(
  command: Command,
  kind: Kind<V>,
  texts: Texts,
): void {
  addIdCommand(command, 'show', texts, async (id, { json }, self) => {
    await withSettings(self, ({ state }) => {
      const view = kind.one(state, id)
      if (json) printJson(view)
      else kind.lines(view).forEach(print)
    })
  })
}

export function addTurnCommands<V extends { id: string }>(
  command: Command,
  kind: Kind<V>,
  texts: Record<'enable' | 'disable', Texts>,
): void {
  for (const turn of ['enable', 'disable'] as const)
    addIdCommand(command, turn, texts[turn], async (id, flags, self) => {
      await withSettings(self, async (settings) => {
        await settings.execute({ type: `${turn}_${kind.name}`, id })
        report(kind, settings, id, flags, `${kind.name} "${id}" is ${turn}d`)
      })
    })
}

/** What a change led to: as JSON, or in a sentence. */
export function report<V extends { id: string }>(
  kind: Kind<V>,
  { state }: Pick<SettingsLog, 'state'>,
  id: string,
  { json }: JsonFlag,
  sentence: string,
): void {
  if (json) printJson(kind.one(state, id))
  else print(sentence)
}
