// Loaded before a forwarder, ahead of what shifts its clock: each request says in a header when its bytes were
// written. A receiver that is busy reads what came long ago, and whoever sent it may have given it up since.
import { subscribe } from 'node:diagnostics_channel'
import { sentHeader } from './sent-header.ts'

const RealDate = Date
/** undici asks for a header's text in the moment in which it writes the request. */
const sentAt = { toString: () => String(RealDate.now()) }

subscribe('undici:request:create', (message) => {
  const { request } = message as { request: { headers: unknown[] } }
  request.headers.push(sentHeader, sentAt)
})
