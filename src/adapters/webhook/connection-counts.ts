/** What became of connections and of what came on them, since the process began. */
export class ConnectionCounts {
  opened = 0
  /** Of those opened: they took up a TLS session of before. */
  resumed = 0
  /** Ended because they had been used for long enough. */
  retired = 0
  /** Requests that went out on a new connection because theirs had ended. */
  restarts = 0
  /** Responses that are none as RFC 9112 has it. */
  malformed = 0
}
