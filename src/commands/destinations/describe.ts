// How destinations are shown to people: a row, or a page.
import type { DestinationView } from '../../console/destinations.ts'
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

export function linesOf(view: DestinationView): string[] {
  const { sharedSecret, earlierSecret, types, events, drop } = view
  return [
    `id             ${view.id}`,
    `name           ${printable(view.name)}`,
    `state          ${view.enabled ? 'enabled' : 'disabled'}`,
    ...pauseLines(view),
    `sources        ${view.sourceIds.join(', ')}`,
    `shared secret  ${sharedSecret ? `fingerprint ${sharedSecret.fingerprint}` : 'none: requests are not signed'}`,
    ...(earlierSecret ? [`               fingerprint ${earlierSecret.fingerprint}, still active`] : []),
    ...(view.standardWebhooks ? ['signatures     Standard Webhooks too'] : []),
    ...(types ? [`call types     ${types.join(', ')}`] : []),
    ...(events
      ? events.map((event, index) => `${index === 0 ? 'events ' : '       '}        ${printable(event)}`)
      : []),
    ...(view.deliverTo === 'every' ? ['deliver to     every URL, each with retries of its own'] : []),
    ...(view.maxRate ? [`max rate       ${view.maxRate}, of all forwarders`] : []),
    ...(view.maxInFlight ? [`max in flight  ${view.maxInFlight}, of all forwarders`] : []),
    ...(view.where ? [`where          ${printable(view.where)}`] : []),
    ...(drop
      ? drop.map((path, index) => `${index === 0 ? 'drops ' : '      '}         ${printable(path)}`)
      : []),
    ...(view.traceContext ? ['trace context  traceparent is passed on'] : []),
    ...view.urls.flatMap(({ number, id, url, headers, goneAt }) => [
      `URL ${number}          ${printable(url)} (id ${id})`,
      ...headers.map(({ name, fingerprint }) => `               ${name}: fingerprint ${fingerprint}`),
      ...(goneAt === null
        ? []
        : [
            `               gone since ${goneAt}: it answered 410. Once it is back: postrider destinations enable ${view.id}`,
          ]),
    ]),
  ]
}

function stateOf({ enabled, pause }: DestinationView): string {
  if (!enabled) return 'disabled'
  if (pause === null) return 'enabled'
  return pause.until === null ? 'paused' : `paused until ${pause.until}`
}

function pauseLines({ id, enabled, pause }: DestinationView): string[] {
  if (pause === null) return []
  const { since, until, keptUntil } = pause
  const end = until === null ? `until \`postrider destinations resume ${id}\`` : `until ${until}`
  return [
    `paused         since ${since}, ${end}`,
    ...(enabled ? [] : ['               while it is disabled, its calls are skipped and not held']),
    ...(keptUntil === null
      ? []
      : [`               what it holds is kept until ${keptUntil}, and longer the later it came`]),
  ]
}
