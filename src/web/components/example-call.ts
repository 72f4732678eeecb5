// A call made of what is known of an event: the fields that its calls have, and of which kind each is. Pure.
import type { EventFieldsAnswer } from '../api/routes.ts'

type Fields = EventFieldsAnswer['fields']

const examples: Readonly<Record<Fields[number]['kinds'][number]['kind'], unknown>> = {
  object: {},
  array: [],
  null: null,
  boolean: true,
  integer: 1,
  number: 1.5,
  string: 'text',
  'date-time': '2026-01-31T12:00:00.000Z',
  date: '2026-01-31',
  email: 'ada@example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** What a call holds anyway; what is below a key that is data itself has no place that could be named. */
const isUsable = (steps: readonly string[]): boolean =>
  ['properties', 'context'].includes(steps[0]!) && !steps.includes('*') && !steps.includes('__proto__')

/** A key is quoted where it could be taken for another path. */
const keyOf = (step: string): string => (step.startsWith('"') ? (JSON.parse(step) as string) : step)

/** As text, to be edited: a track call with a value at each place that calls of this event have. */
export function exampleCall(event: string, fields: Fields): string {
  const call: Record<string, unknown> = { type: 'track', userId: 'postrider-test', event, properties: {} }
  for (const { path, kinds } of fields) {
    const steps = (path.match(/"(?:[^"\\]|\\.)*"|[^.[\]"]+|\[\]/g) ?? []).map(keyOf)
    if (isUsable(steps)) put(call, steps, examples[kinds[0]!.kind])
  }
  return JSON.stringify(call, null, 2)
}

function put(call: Record<string, unknown>, steps: readonly string[], value: unknown): void {
  let at: Record<string, unknown> = call
  steps.forEach((step, index) => {
    const key = step === '[]' ? '0' : step
    const isLast = index === steps.length - 1
    const inner = steps[index + 1] === '[]' ? [] : {}
    if (isLast) at[key] ??= structuredClone(value)
    else if (typeof at[key] !== 'object' || at[key] === null) at[key] = inner
    if (!isLast) at = at[key] as Record<string, unknown>
  })
}
