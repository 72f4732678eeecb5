import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { useLive, type LiveAsked } from '../api/live.ts'
import type { ListPage, Route, Routes } from '../api/routes.ts'
import { query, setQuery } from '../app/address.ts'
import { Empty } from './notices.tsx'
import { Loaded } from './views.tsx'

export interface Column<T> {
  head: string
  /** Stands in its head in place of the text. */
  headCell?: ComponentChildren
  /** Numbers stand at the right, aligned by their digits. */
  isNumber?: boolean
  /** Left out where the screen is narrow: `medium` below 1100 px, `narrow` below 700 px. */
  hides?: 'medium' | 'narrow'
  /** Names the row for screen readers. */
  isName?: boolean
  cell: (row: T) => ComponentChildren
}

/** A table that scrolls by itself where it is too wide. */
export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
}) {
  const classOf = ({ isNumber, hides }: Column<T>) =>
    [isNumber && 'number', hides && `hides-${hides}`].filter(Boolean).join(' ')
  return (
    <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {column.headCell ?? column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) =>
                column.isName ? (
                  <th key={column.head} scope="row" class={classOf(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.head} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export type ListRoute = { [R in Route]: Routes[R] extends ListPage<unknown> ? R : never }[Route]
type ItemOf<R extends ListRoute> = Routes[R] extends ListPage<infer T> ? T : never

interface PagedTableProps<R extends ListRoute> {
  route: R
  asked?: LiveAsked
  /** For people: `failed attempts`. */
  what: string
  columns: readonly Column<ItemOf<R>>[]
  keyOf: (row: ItemOf<R>) => string
  empty: { title: string; text?: string }
  /** Name of the query parameter that holds the cursor; another one where a page has several lists. */
  cursorName?: string
  limit?: number
  /** False: the first page is not read again by itself, because that takes much. */
  isFollowed?: boolean
  /** Another number: something was changed, and the list is read again at once. */
  version?: number
}

/** A list of the API, a page at a time. The cursor is in the URL, so back and reload keep the page. */
export function PagedTable<R extends ListRoute>({
  route,
  asked = {},
  what,
  columns,
  keyOf,
  empty,
  cursorName = 'cursor',
  limit = 50,
  isFollowed = true,
  version = 0,
}: PagedTableProps<R>) {
  const cursor = query.value.get(cursorName)
  const live = useLive(
    route,
    { ...asked, query: { ...asked.query, limit, cursor } },
    isFollowed && cursor === null ? 10_000 : 0,
  )
  useEffect(() => {
    if (version > 0) live.reload()
  }, [version])
  const turn = (to: string | null) => setQuery({ [cursorName]: to }, { replace: false })
  return (
    <Loaded live={live as never} what={what}>
      {({ data, next }: ListPage<ItemOf<R>>) => (
        <>
          {data.length > 0 ? (
            <Table label={what} columns={columns} rows={data} keyOf={keyOf} />
          ) : (
            <Empty title={next ? 'Nothing found on this page; there is more to look through.' : empty.title}>
              {!next && empty.text && <p>{empty.text}</p>}
            </Empty>
          )}
          {(cursor !== null || next !== null) && (
            <nav class="pages" aria-label={`Pages of ${what}`}>
              <button type="button" class="button" disabled={cursor === null} onClick={() => turn(null)}>
                First page
              </button>
              <button type="button" class="button" disabled={next === null} onClick={() => turn(next)}>
                Next page
              </button>
            </nav>
          )}
        </>
      )}
    </Loaded>
  )
}
