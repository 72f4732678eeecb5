import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Child } from './child.ts'
import { otherCore } from './rig.ts'

const source = join(import.meta.dirname, 'receiver')
const program = join(import.meta.dirname, 'results', 'receiver')

let build: boolean | null = null

/**
 * A receiver on the other core that answers 200 after `delayMs` and counts, on each of `ports`. It is written in Go, so that
 * it takes little of its core; where there is no Go, one for Node takes its place.
 */
export function startReceiver({ delayMs = 0, ports = 1 } = {}): Child {
  const args = [String(delayMs), String(ports)]
  return new Child(isBuilt() ? program : 'receiver.ts', { core: otherCore, args })
}

function isBuilt(): boolean {
  if (build !== null) return build
  mkdirSync(join(program, '..'), { recursive: true })
  const PATH = `${process.env.PATH}:/usr/local/go/bin`
  const { status, error } = spawnSync('go', ['build', '-trimpath', '-o', program, '.'], {
    cwd: source,
    env: { ...process.env, PATH },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  build = status === 0
  if (!build)
    console.error(
      `no receiver in Go (${error?.message ?? `go build ended with ${status}`}): one for Node is used instead`,
    )
  return build
}
