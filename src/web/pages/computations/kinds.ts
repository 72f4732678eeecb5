import type {
  Route,
  Routes,
  ComputationAnswer,
  CountedComputationAnswer,
  ListPage,
  SyncAnswer,
} from '../../api/routes.ts'

/** What audiences and computed traits have in common is written once; this is what differs. */
export interface Kind {
  one: string
  many: string
  page: 'audience' | 'trait'
  list: RouteOf<ListPage<ComputationAnswer>>
  create: RouteOf<ComputationAnswer>
  show: RouteOf<CountedComputationAnswer>
  sync: RouteOf<SyncAnswer>
  change: RouteOf<SyncAnswer>
  remove: 'DELETE /audiences/{id}' | 'DELETE /traits/{id}'
  /** What its count counts. */
  counted: string
}

type RouteOf<T> = { [R in Route]: Routes[R] extends T ? (T extends Routes[R] ? R : never) : never }[Route]

export const audiences: Kind = {
  one: 'audience',
  many: 'audiences',
  page: 'audience',
  list: 'GET /audiences',
  create: 'POST /audiences',
  show: 'GET /audiences/{id}',
  sync: 'POST /audiences/{id}/sync',
  change: 'POST /audiences/{id}/change',
  remove: 'DELETE /audiences/{id}',
  counted: 'Members',
}

export const traits: Kind = {
  one: 'computed trait',
  many: 'computed traits',
  page: 'trait',
  list: 'GET /traits',
  create: 'POST /traits',
  show: 'GET /traits/{id}',
  sync: 'POST /traits/{id}/sync',
  change: 'POST /traits/{id}/change',
  remove: 'DELETE /traits/{id}',
  counted: 'Users with a value',
}

/** A user id a line becomes JSON lines, as the API takes them; what is JSON already stays as it is. */
export function linesOfIds(text: string, member = true): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) =>
      line.startsWith('{') ? line : JSON.stringify({ userId: line, ...(!member && { member }) }),
    )
    .map((line) => `${line}\n`)
    .join('')
}

/** Files of JSON lines may be of any size, and are sent as they are; their last line is ended, for others may follow. */
export async function linesOfFile(file: Blob): Promise<Blob | string> {
  const isJson = (await file.slice(0, 1).text()) === '{'
  if (!isJson) return linesOfIds(await file.text())
  const isEnded = (await file.slice(-1).text()) === '\n'
  return isEnded ? file : new Blob([file, '\n'])
}
