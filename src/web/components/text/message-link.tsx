import { linkTo } from '../../../console/page-paths.ts'

/** Leads to the life of a call. */
export const MessageLink = ({ messageId, text = messageId }: { messageId: string; text?: string }) => (
  <a class="id cut" href={linkTo('find', { q: messageId })} title={messageId}>
    {text}
  </a>
)
