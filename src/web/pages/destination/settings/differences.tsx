import { labelOf, shownText, type Draft, type DraftField } from './draft.ts'

/** Fields of two or three versions, side by side. */
export function Differences({
  fields,
  versions,
}: {
  fields: readonly DraftField[]
  versions: readonly (readonly [head: string, draft: Draft])[]
}) {
  return (
    <div class="table-frame" role="region" aria-label="Differences" tabIndex={0}>
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">Setting</th>
            {versions.map(([head]) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field}>
              <th scope="row">{labelOf(field)}</th>
              {versions.map(([head, draft]) => (
                <td key={head} class="id">
                  {shownText(field, draft)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
