// How destinations are shown to people: a row, or a page.
import type { DestinationView } from '../../console/destinations.ts'
import { destinationOptions, optionNames, type OptionName } from '../../core/settings/destination-options.ts'
import { printable } from '../output.ts'

export const headings = ['ID', 'NAME', 'STATE', 'SOURCES', 'URLS', 'SIGNED']

export function rowOf(view: DestinationView): (string | number)[] {
  const gone = view.urls.filter(({ goneAt }) => goneAt !== null).length
  return [
    view.id,
    view.name,
    stateOf(view),
    view.sourceIds.join(', '),
    gone === 0 ? String(view.urls.length) : `${view.urls.length} (${gone} gone)`,
    view.sharedSecret ? 'yes' : 'no',
  ]
}

export function pageOf(view: DestinationView): string {
  const { sharedSecret, earlierSecret } = view
  const lines: Line[] = [
    ['id', view.id],
    ['name', view.name],
    ['state', view.enabled ? 'enabled' : 'disabled'],
    ...pauseLines(view),
    ['sources', view.sourceIds.join(', ')],
    ['shared secret', sharedSecret ? `fingerprint ${sharedSecret.fingerprint}` : 'none: requests are not signed'],
    ...(earlierSecret ? [['', `fingerprint ${earlierSecret.fingerprint}, still active`] as const] : []),
    ...optionNames.flatMap((name) => optionLines(name, view[name])),
    ...view.urls.flatMap(({ number, id, url, headers, goneAt }): Line[] => [
      [`URL ${number}`, `${url} (id ${id})`],
      ...headers.map(({ name, fingerprint }) => ['', `${name}: fingerprint ${fingerprint}`] as const),
      ...(goneAt === null
        ? []
        : [
            [
              '',
              `gone since ${goneAt}: it answered 410. Once it is back: postrider destinations enable ${view.id}`,
            ] as const,
          ]),
    ]),
  ]
  const width = Math.max(...lines.map(([label]) => label.length))
  return lines.map(([label, text]) => `${label.padEnd(width)}  ${printable(text)}`).join('\n')
}

type Line = readonly [label: string, text: string]

/** What differs from how most destinations work. */
function optionLines(name: OptionName, value: unknown): Line[] {
  const { fallback, label } = destinationOptions[name]
  if (value === fallback) return []
  const texts = Array.isArray(value) ? (value as string[]) : [value === true ? 'on' : String(value)]
  return texts.map((text, index) => [index === 0 ? label.toLowerCase() : '', text])
}

function stateOf({ enabled, pause }: DestinationView): string {
  if (!enabled) return 'disabled'
  if (pause === null) return 'enabled'
  return pause.until === null ? 'paused' : `paused until ${pause.until}`
}

function pauseLines({ id, enabled, pause }: DestinationView): Line[] {
  if (pause === null) return []
  const { since, until, keptUntil } = pause
  const end = until === null ? `until \`postrider destinations resume ${id}\`` : `until ${until}`
  return [
    ['paused', `since ${since}, ${end}`],
    ...(enabled ? [] : [['', 'while it is disabled, its calls are skipped and not held'] as const]),
    ...(keptUntil === null
      ? []
      : [['', `what it holds is kept until ${keptUntil}, and longer the later it came`] as const]),
  ]
}
