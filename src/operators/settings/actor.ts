// Who changes the settings here, for their history. No token has such a name: theirs hold no colon.
import { hostname, userInfo } from 'node:os'

/** A person, or a script, at a terminal. */
export const commandActor = (): string => `cli:${userName()}@${hostname()}`

export const partActor = (part: 'console' | 'forwarder'): string => `${part}:${hostname()}`

/** In a container a user may have a number and no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'unknown')
  }
}
