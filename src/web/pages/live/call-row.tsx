import { useState } from 'preact/hooks'
import { LongText } from '../../components/text/long-text.tsx'
import { MessageLink } from '../../components/text/message-link.tsx'
import { absoluteText } from '../../components/figures.ts'
import type { TailedCall } from './tailed-call.ts'

const rawLength = 400

/** A call on a line; all of it when somebody opens it. */
export function CallRow({ call, isRaw }: { call: TailedCall; isRaw: boolean }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li class="call">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{isRaw ? <RawLine call={call} /> : <ReadableLine call={call} />}</summary>
        {isOpen && <LongText text={call.text} what="call" />}
      </details>
      {call.messageId !== '' && <MessageLink messageId={call.messageId} text="Timeline" />}
    </li>
  )
}

const RawLine = ({ call: { text } }: { call: TailedCall }) => (
  <code class="foreign cut">{text.slice(0, rawLength)}</code>
)

function ReadableLine({ call: { receivedAt, type, user, what, preview, fault } }: { call: TailedCall }) {
  const time = receivedAt === null ? null : absoluteText(Date.parse(receivedAt))
  return (
    <>
      <time class="numbers faint" {...(time && { dateTime: receivedAt!, title: time })}>
        {time?.slice(11, 23) ?? '–'}
      </time>
      <span class={`call-type call-${type}`}>{type}</span>
      <span class="foreign cut call-what">
        {what ?? ''}
        {fault !== null && <span class="is-bad">{fault}</span>}
      </span>
      <span class="id cut">{user ?? ''}</span>
      <code class="foreign cut faint call-preview">{preview}</code>
    </>
  )
}
