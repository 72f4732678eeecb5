import { Child } from './child.ts'
import type { Certificate } from './certificate.ts'
import { goProgram } from './programs.ts'
import { otherCore } from './rig.ts'

/**
 * A receiver on the other core that answers 200 after `delayMs` and counts, on each of `ports`. It is written in Go, so that
 * it takes little of its core; where there is no Go, one for Node takes its place.
 */
export function startReceiver({
  delayMs = 0,
  ports = 1,
  certificate,
  batched = false,
}: ReceiverOptions = {}): Child {
  const program = goProgram('receiver')
  if (program === null && batched) throw new Error('a receiver that counts the calls of batches needs Go')
  if (program === null && certificate) throw new Error('a receiver that speaks TLS needs Go')
  const args = [String(delayMs), String(ports), ...(certificate ? [certificate.folder] : [])]
  return new Child(program ?? 'receiver.ts', { core: otherCore, args })
}

interface ReceiverOptions {
  delayMs?: number
  ports?: number
  /** It is told to count calls. */
  batched?: boolean
  /** With it, it speaks TLS 1.3. */
  certificate?: Certificate
}
