// What the commands of settings have in common: listing, showing, turning on and off.
import type { Command } from 'commander'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import { settingIn, type SettingKind, type ShownFacts } from '../../console/setting-kind.ts'
import { runAction, type Context } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printJson, printTable } from '../output.ts'
import { withSettings } from './with-settings.ts'

/** What a subcommand does, as a summary and as a sentence. */
export interface Texts {
  summary: string
  description: string
}

interface Identified {
  id: string
}

/** One kind of setting, and how it is listed. */
export interface ListedSetting<T extends Identified, V> extends SettingKind<T, V> {
  /** What a list without any begins with. */
  none: string
  headings: readonly string[]
  /** What its views need to know beside the settings. */
  facts?(context: Context, shown: readonly T[]): Promise<ShownFacts>
  row(view: V): (string | number)[]
}

/** One kind of setting that can be shown, enabled and disabled, too. */
export interface ShownSetting<T extends Identified, V> extends ListedSetting<T, V> {
  one: 'source' | 'destination'
  lines(view: V): string[]
}

export function addListCommand<T extends Identified, V>(command: Command, kind: ListedSetting<T, V>): void {
  command
    .command('list')
    .summary(`all ${kind.one}s`)
    .description(`All ${kind.one}s.`)
    .option('--json', 'one JSON object a line')
    .action(
      runAction(async ({ json }: JsonFlag, self: Command) => {
        await withSettings(self, async ({ state }, { context }) => {
          const items = [...kind.all(state).values()].filter((item) => kind.isListed?.(item) ?? true)
          const facts = await kind.facts?.(context, items)
          const views = items.map((item) => kind.view(item, state, facts))
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

export function addShowCommand<T extends Identified, V>(
  command: Command,
  kind: ShownSetting<T, V>,
  texts: Texts,
): void {
  addIdCommand(command, 'show', texts, async (id, { json }, self) => {
    await withSettings(self, async ({ state }, { context }) => {
      const item = settingIn(kind, state, id)
      const view = kind.view(item, state, await kind.facts?.(context, [item]))
      if (json) printJson(view)
      else kind.lines(view).forEach(print)
    })
  })
}

export function addTurnCommands<T extends Identified, V>(
  command: Command,
  kind: ShownSetting<T, V>,
  texts: Record<'enable' | 'disable', Texts>,
): void {
  for (const turn of ['enable', 'disable'] as const)
    addIdCommand(command, turn, texts[turn], async (id, flags, self) => {
      await withSettings(self, async (settings) => {
        await settings.execute({ type: `${turn}_${kind.one}`, id })
        report(kind, settings, id, flags, `${kind.one} "${id}" is ${turn}d`)
      })
    })
}

/** What a change led to: as JSON, or in a sentence. */
export function report<T extends Identified, V>(
  kind: SettingKind<T, V>,
  { state }: Pick<SettingsLog, 'state'>,
  id: string,
  { json }: JsonFlag,
  sentence: string,
): void {
  if (json) printJson(kind.view(settingIn(kind, state, id), state))
  else print(sentence)
}
