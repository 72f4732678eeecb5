import type { UserMessageAnswer } from '../../api/routes.ts'
import { NoValue } from '../../components/notices.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { MessageLink } from '../../components/text/message-link.tsx'
import type { Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'

/** The calls of one user, the newest first. */
export function UserCalls({ userId }: { userId: string }) {
  return (
    <section class="section" aria-labelledby="calls-title">
      <div class="section-head">
        <h2 id="calls-title" class="foreign">
          Calls of {userId}
        </h2>
        <p>As far back as Kafka keeps calls; those that a deletion request covers are left out.</p>
      </div>
      <PagedTable
        route="GET /users/{id}/messages"
        asked={{ id: userId }}
        what="calls"
        columns={columns}
        keyOf={({ partition, offset }) => `${partition} ${offset}`}
        empty={{ title: 'No call is of a user with this id.' }}
        isFollowed={false}
      />
    </section>
  )
}

const columns: Column<UserMessageAnswer>[] = [
  { head: 'Received', cell: ({ receivedAt }) => <Ago at={receivedAt} /> },
  { head: 'Type', cell: ({ type }) => <span class={`call-type call-${type}`}>{type}</span> },
  {
    head: 'Event or name',
    hides: 'narrow',
    cell: ({ event, name }) =>
      event !== null || name !== null ? (
        <span class="foreign">{event ?? name}</span>
      ) : (
        <NoValue why="It has none" />
      ),
  },
  { head: 'Source', hides: 'medium', cell: ({ sourceId }) => <span class="id">{sourceId}</span> },
  { head: 'Call', isName: true, cell: ({ messageId }) => <MessageLink messageId={messageId} /> },
]
