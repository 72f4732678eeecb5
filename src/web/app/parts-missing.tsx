import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { pathTo } from '../../console/page-paths.ts'
import { useLive } from '../api/live.ts'
import type { ProblemAnswer } from '../api/routes.ts'
import { Icon } from '../components/icon.tsx'
import { currentPage } from './address.ts'

/** Because of these, what any page shows is not the whole truth. */
const kinds: readonly ProblemAnswer['kind'][] = [
  'ledger_unread',
  'no_collector',
  'no_forwarder',
  'nothing_read',
  'partitions_unread',
]

/** Parts that are missing, as far as is known, whether somebody has seen it or not. */
export const missingParts = signal<readonly ProblemAnswer[]>([])

/** On every page but the overview, which has all of it: that parts are missing which must run. */
export function PartsMissing() {
  const isWanted = currentPage.value?.page !== 'overview'
  const { data } = useLive('GET /problems', { query: { kind: kinds } }, 10_000, isWanted)
  // In the turn in which it is said here: nothing is green beside it.
  useLayoutEffect(() => void (missingParts.value = data?.problems ?? []), [data])
  const missing = data?.problems.filter(({ seen }) => !seen) ?? []
  if (!isWanted || missing.length === 0) return null
  return (
    <div class="notice notice-warn" role="status">
      <Icon name="warning" />
      <div>
        <p>
          {missing.map(({ title }) => `${title}.`).join(' ')} <a href={pathTo('overview')}>What that means</a>
        </p>
      </div>
    </div>
  )
}
