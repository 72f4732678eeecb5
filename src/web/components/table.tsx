import { Fragment, type ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLive, type Live, type LiveAsked } from '../api/live.ts'
import type { ListPage, Route, Routes } from '../api/routes.ts'
import { query, setQuery } from '../app/address.ts'
import { TextField } from './fields.tsx'
import { countText } from './figures.ts'
import { Empty, Loading } from './notices.tsx'
import { Loaded } from './views.tsx'
import { width, type Width } from './width.ts'

export interface Column<T> {
  head: string
  /** Stands in its head in place of the text. */
  headCell?: ComponentChildren
  /** Numbers stand at the right, aligned by their digits. */
  isNumber?: boolean
  /** Stands under its row where there is no room: `medium` up to 1100 px, `narrow` up to 700 px. */
  moves?: 'medium' | 'narrow'
  /** Names the row for screen readers. */
  isName?: boolean
  /** The API sorts by it: as it names it, and in which direction. */
  sort?: { by: string; direction: 'ascending' | 'descending' }
  cell: (row: T) => ComponentChildren
}

/** By what the API sorts a list. */
export interface Sorting {
  by: string
  choose: (by: string) => void
}

interface TableProps<T> {
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
  sorting?: Sorting | undefined
}

/** More than a person reads at once; and drawing them takes no longer than a click may. */
const maxRows = 100

/** A table that scrolls by itself where it is too wide, and has pages where it is too long. */
export function Table<T>(props: TableProps<T>) {
  const { label, rows } = props
  const [turned, turn] = useState(0)
  if (rows.length <= maxRows) return <Rows {...props} />
  const last = Math.ceil(rows.length / maxRows) - 1
  const page = Math.min(turned, last)
  const first = page * maxRows
  const shown = rows.slice(first, first + maxRows)
  return (
    <>
      <Rows {...props} rows={shown} />
      <Pages
        what={label}
        isFirst={page === 0}
        toFirst={() => turn(0)}
        toNext={page === last ? null : () => turn(page + 1)}
        range={`${countText(first + 1)}–${countText(first + shown.length)} of ${countText(rows.length)}`}
      />
    </>
  )
}

/** Whether its place is under its row, in a window of this width. */
const isMoved = <T,>({ moves }: Column<T>, at: Width): boolean =>
  moves !== undefined && (at === 'narrow' || at === moves)

function Rows<T>({ label, columns, rows, keyOf, sorting }: TableProps<T>) {
  const shown = columns.filter((column) => !isMoved(column, width.value))
  const moved = columns.filter((column) => isMoved(column, width.value))
  const classOf = ({ isNumber }: Column<T>) => (isNumber ? 'number' : '')
  return (
    <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {shown.map((column) => (
              <th
                key={column.head}
                scope="col"
                class={classOf(column)}
                aria-sort={sorting && column.sort?.by === sorting.by ? column.sort.direction : undefined}
              >
                <Head column={column} sorting={sorting} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Fragment key={keyOf(row)}>
              <tr>
                {shown.map((column) =>
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
              {moved.length > 0 && (
                <tr class="moved">
                  <td colSpan={shown.length}>
                    <Moved columns={moved} row={row} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** What has no column of its own here. */
function Moved<T>({ columns, row }: { columns: readonly Column<T>[]; row: T }) {
  return (
    <dl>
      {columns.map(({ head, cell }) => (
        <div key={head}>
          <dt>{head}</dt> <dd>{cell(row)}</dd>
        </div>
      ))}
    </dl>
  )
}

function Head<T>({
  column: { head, headCell, sort },
  sorting,
}: {
  column: Column<T>
  sorting: Sorting | undefined
}) {
  if (!sort || !sorting) return <>{headCell ?? head}</>
  return (
    <button type="button" class="sort" onClick={() => sorting.choose(sort.by)}>
      {head}
    </button>
  )
}

function Pages({
  what,
  isFirst,
  toFirst,
  toNext,
  range,
}: {
  what: string
  isFirst: boolean
  toFirst: () => void
  /** Null on the last page. */
  toNext: (() => void) | null
  range?: string
}) {
  return (
    <nav class="pages" aria-label={`Pages of ${what}`}>
      <button type="button" class="button" disabled={isFirst} onClick={toFirst}>
        First page
      </button>
      <button type="button" class="button" disabled={toNext === null} onClick={() => toNext?.()}>
        Next page
      </button>
      {range !== undefined && (
        <span class="faint" role="status">
          {range}
        </span>
      )}
    </nav>
  )
}

export type ListRoute = { [R in Route]: Routes[R] extends ListPage<unknown> ? R : never }[Route]
type ItemOf<R extends ListRoute> = Routes[R] extends ListPage<infer T> ? T : never

interface AskedPage {
  asked?: LiveAsked
  /** Name of the query parameter that holds the cursor; another one where a page has several lists. */
  cursorName?: string
  limit?: number
  /** Which pages are read again by themselves: the first one, on which new items come; all, whose figures change; or none, because that takes much. */
  follows?: 'first' | 'all' | 'none'
  /** Another number: something was changed, and the list is read again at once. */
  version?: number
}

/** A page of a list. What was shown stays until what is asked for now is there. */
export function usePage<R extends ListRoute>(
  route: R,
  { asked = {}, cursorName = 'cursor', limit = 50, follows = 'first', version = 0 }: AskedPage,
): Live<Routes[R]> & { isOfBefore: boolean } {
  const cursor = query.value.get(cursorName)
  const isFollowed = follows === 'all' || (follows === 'first' && cursor === null)
  const paged = { ...asked, query: { ...asked.query, limit, cursor } }
  const live = useLive(route, paged, isFollowed ? 10_000 : 0)
  const before = useRef<{ id: string | undefined; live: Live<Routes[R]> } | null>(null)
  useEffect(() => {
    if (version > 0) live.reload()
  }, [version])
  if (live.data !== null) before.current = { id: asked.id, live }
  // What is of somebody else is not shown under a new name.
  if (live.failure !== null || before.current?.id !== asked.id) before.current = null
  const isOfBefore = live.data === null && before.current !== null
  return { ...(isOfBefore ? { ...before.current!.live, reload: live.reload } : live), isOfBefore }
}

interface PageTableProps<R extends ListRoute> {
  live: Live<Routes[R]> & { isOfBefore: boolean }
  /** For people: `failed attempts`. */
  what: string
  columns: readonly Column<ItemOf<R>>[]
  keyOf: (row: ItemOf<R>) => string
  empty: { title: string; text?: string }
  cursorName?: string
  sorting?: Sorting
}

/** A page of a list, and the way to others. The cursor is in the URL, so back and reload keep the page. */
export function PageTable<R extends ListRoute>({
  live,
  what,
  columns,
  keyOf,
  empty,
  cursorName = 'cursor',
  sorting,
}: PageTableProps<R>) {
  const cursor = query.value.get(cursorName)
  const turn = (to: string | null) => setQuery({ [cursorName]: to }, { replace: false })
  return (
    <Loaded live={live as never} what={what}>
      {({ data, next }: ListPage<ItemOf<R>>) => (
        <div class={live.isOfBefore ? 'list is-of-before' : 'list'} aria-busy={live.isOfBefore}>
          {data.length > 0 ? (
            <Table label={what} columns={columns} rows={data} keyOf={keyOf} sorting={sorting} />
          ) : live.isOfBefore ? (
            // That nothing was found is said of what was asked for, which is another thing now.
            <Loading what={what} />
          ) : (
            <Empty title={next ? 'Nothing found on this page; there is more to look through.' : empty.title}>
              {!next && empty.text && <p>{empty.text}</p>}
            </Empty>
          )}
          {(cursor !== null || next !== null) && (
            <Pages
              what={what}
              isFirst={cursor === null}
              toFirst={() => turn(null)}
              toNext={next === null ? null : () => turn(next)}
            />
          )}
        </div>
      )}
    </Loaded>
  )
}

/** A list of the API, a page at a time. */
export function PagedTable<R extends ListRoute>({
  route,
  ...props
}: { route: R } & AskedPage & Omit<PageTableProps<R>, 'live'>) {
  return <PageTable {...props} live={usePage(route, props)} />
}

/** The text that a list is filtered by is in the URL. */
export const FilterByName = () => (
  <TextField
    label="Filter by name or id"
    type="search"
    value={query.value.get('q') ?? ''}
    // Another filter begins at the first page.
    change={(value) => setQuery({ q: value, cursor: null })}
  />
)
