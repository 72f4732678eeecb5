import type { ComponentChildren } from 'preact'

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
