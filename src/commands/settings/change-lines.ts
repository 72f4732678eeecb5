import type { ChangedSetting } from '../../console/history/changed-setting.ts'
import { printable } from '../output.ts'

const maxValueLength = 200

/** What changed of one thing, for people: its name, and a line for each field. */
export function changeLines({ kind, id, created, changes }: ChangedSetting): string[] {
  const sign = created ? '+' : '~'
  return [
    `${sign} ${kind} ${id}`,
    ...changes.map(({ field, from, to }) =>
      created ? `    ${field}: ${shown(to)}` : `    ${field}: ${shown(from)} -> ${shown(to)}`,
    ),
  ]
}

function shown(value: unknown): string {
  if (value === null) return 'none'
  const text = printable(typeof value === 'string' ? value : JSON.stringify(value))
  return text.length <= maxValueLength ? text : `${text.slice(0, maxValueLength)}…`
}
