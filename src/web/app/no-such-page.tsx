import { Empty } from '../components/notices.tsx'
import { PageTitle } from './shell.tsx'

export function NoSuchPage() {
  return (
    <>
      <PageTitle title="No such page" />
      <Empty title="There is nothing at this address.">
        <p>
          It may be a link of another version. <a href="/">Go to the overview</a>.
        </p>
      </Empty>
    </>
  )
}
