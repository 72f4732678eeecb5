import { useState } from 'preact/hooks'
import { useLongRequest } from '../../api/long-request.ts'
import { may } from '../../app/session.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Note } from '../../components/notices.tsx'
import { LongText } from '../../components/text/long-text.tsx'
import type { IndexedRecords } from './search.ts'
import type { CallCopy } from './words.ts'

/** What the call says: read when somebody asks, by those who may. */
export function CallBody({ messageId, copy }: { messageId: string; copy: CallCopy }) {
  const [isOpen, setOpen] = useState(false)
  if (copy.call === null) return null
  if (!may('operator'))
    return (
      <div class="section">
        <Note>What the call says is shown to operators; this token has the role reader.</Note>
      </div>
    )
  const { partition, offset } = copy.received
  return (
    <details class="section part" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>What it says</h2>
        <span class="faint">as it was sent</span>
      </summary>
      {isOpen && <Text key={`${partition} ${offset}`} messageId={messageId} place={{ partition, offset }} />}
    </details>
  )
}

function Text({ messageId, place }: { messageId: string; place: { partition: number; offset: number } }) {
  const live = useLongRequest<'GET /messages/{id}/body', IndexedRecords>('GET /messages/{id}/body', {
    id: messageId,
    query: place,
  })
  return (
    <Loaded live={live} what="the call">
      {({ text }) => <LongText text={text} what="call" />}
    </Loaded>
  )
}
