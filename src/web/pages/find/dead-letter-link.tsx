import { pathTo } from '../../../console/page-paths.ts'
import { may } from '../../app/session.ts'

/** Leads to a dead letter, for those who may see its contents. */
export function DeadLetterLink({ id }: { id: string | null | undefined }) {
  if (id === null || id === undefined) return null
  if (!may('operator')) return <span class="id">{id}</span>
  return (
    <a class="id" href={pathTo('deadLetter', { id })}>
      {id}
    </a>
  )
}
