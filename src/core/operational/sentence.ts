import type { OperationalEvent, OperationalEventName, ShownResponse } from './operational-event.ts'

type Properties = Record<string, unknown>

/** What an event says, as one line for people: the text of mails, and of the presets for chats. */
export function sentenceOf(event: OperationalEvent): string {
  const { name, destination, properties, ended = null, more = 0 } = event
  const said = sentences[name](whoOf(destination, properties), properties)
  const rest = ended === false && ending.has(name) ? '; others of it are not over' : ''
  const further = more > 0 ? ` (and ${more} more)` : ''
  // What a sender or receiver chose must not begin a line of its own.
  return `${said}${rest}${further}`.replaceAll(/\s+/g, ' ')
}

const ending: ReadonlySet<OperationalEventName> = new Set(['Endpoint Recovered', 'Destination Resumed'])

function whoOf(destination: string | null, { destinations, urlId }: Properties): string {
  if (destination !== null) return typeof urlId === 'string' ? `${destination} (${urlId})` : destination
  return Array.isArray(destinations) && destinations.length > 0 ? destinations.join(', ') : ''
}

const answered = ({ lastResponse }: Properties): string => {
  const detail = (lastResponse as ShownResponse | null | undefined)?.detail
  return detail ? `: ${detail}` : ''
}
/** A property that differs among those that an event stands for is null. */
const isNone = (given: unknown): boolean => given === null || given === undefined
const value = (given: unknown, otherwise: string): string =>
  isNone(given) || given === '' ? otherwise : String(given)
const reasonOf = (reason: unknown): string => value(reason, 'several reasons').replaceAll('_', ' ')

const sentences: Readonly<Record<OperationalEventName, (who: string, properties: Properties) => string>> = {
  'Endpoint Down': (who, properties) => `Down: ${who}${answered(properties)}`,
  'Endpoint Recovered': (who) => `Recovered: ${who}`,
  'Endpoint Gone': (who) => `Gone: ${who}: it answered 410 and gets nothing more`,
  'Deliveries Failed': (who, properties) => {
    const { count, reason } = properties
    return who === ''
      ? `Not worked on: ${value(count, 'several')} records: ${reasonOf(reason)}`
      : `Failed: ${value(count, 'several')} to ${who}: ${reasonOf(reason)}${answered(properties)}`
  },
  'Destination Paused': (who, { until }) => `Paused: ${who}${isNone(until) ? '' : ` until ${String(until)}`}`,
  'Destination Resumed': (who) => `Resumed: ${who}`,
  'Replay Finished': (who, { count }) =>
    `Replay finished: ${value(count, '0')} sent${who === '' ? '' : ` to ${who}`}`,
  'Deletion Finished': (_, { deletion, delivered, failed }) =>
    `Deletion finished: ${value(deletion, '')}: ${value(delivered, '0')} delivered, ${value(failed, '0')} failed`,
  'Audit Failed': (_, { count }) =>
    `Audit failed: ${value(count, '0')} gaps or copies; calls are not accounted for`,
  'Records Lost': (_, { count, topic, partition }) =>
    `Lost: ${value(count, 'several')} records of ${value(topic, 'several topics')}${isNone(partition) ? '' : `/${String(partition)}`} were removed before they were read`,
  'Plan Violated': (_, { count, source, event, path, rule }) =>
    `Plan violated: ${value(count, 'several')} calls of ${value(source, 'several sources')}: ` +
    [value(event, 'several events'), value(path, ''), value(rule, '')].filter(Boolean).join(' '),
  'Problem Ended': (who, { of, reason, source, event, path }) => {
    const about = [who, isNone(reason) ? '' : reasonOf(reason), source, event, path].filter(Boolean).join(' ')
    return `Over: ${value(of, '')}${about === '' ? '' : `: ${about}`}`
  },
}
