import { pathTo } from '../../../console/page-paths.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Note } from '../../components/notices.tsx'

/** One script with the form of the settings: they are made of the same fields. */
const form = () => import('./settings/settings.tsx').then(({ NewForm }) => NewForm)

/** Makes a destination: where calls go, which ones, the secret that signs them, and a test before it is saved. */
export function NewDestination() {
  return (
    <>
      <PageTitle title="New destination" above={<a href={pathTo('destinations')}>Destinations</a>} />
      {may('admin') ? (
        <Lazy load={form} what="the form" props={{}} />
      ) : (
        <Note>Somebody with the role admin can make one.</Note>
      )}
    </>
  )
}
