import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from './child.ts'
import type { Certificate } from './certificate.ts'
import { otherCore } from './rig.ts'

const source = join(import.meta.dirname, 'receiver')

/** Null where there is none. */
let program: string | null | undefined

/**
 * A receiver on the other core that answers 200 after `delayMs` and counts, on each of `ports`. It is written in Go, so that
 * it takes little of its core; where there is no Go, one for Node takes its place.
 */
export function startReceiver({ delayMs = 0, ports = 1, certificate }: ReceiverOptions = {}): Child {
  if (program === undefined) program = build()
  if (program === null && certificate) throw new Error('a receiver that speaks TLS needs Go')
  const args = [String(delayMs), String(ports), ...(certificate ? [certificate.folder] : [])]
  return new Child(program ?? 'receiver.ts', { core: otherCore, args })
}

interface ReceiverOptions {
  delayMs?: number
  ports?: number
  /** With it, it speaks TLS 1.3. */
  certificate?: Certificate
}

function build(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const { status, error } = spawnSync('go', ['build', '-trimpath', '-o', join(folder, 'receiver'), '.'], {
    cwd: source,
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status === 0) return join(folder, 'receiver')
  const why = error?.message ?? `go build ended with ${status}`
  console.error(`no receiver in Go (${why}): one for Node takes its place`)
  return null
}
