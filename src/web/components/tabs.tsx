import { pathTo, type PageName } from '../../console/page-paths.ts'
import { currentPage } from '../app/address.ts'

/** Links between pages that belong together. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly { page: PageName; text: string }[] }) {
  const here = currentPage.value?.page
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ page, text }) => (
        <a key={page} href={pathTo(page)} aria-current={page === here ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  )
}
