import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { bindsCores } from '../child.ts'
import { deploy, measuredCore, type Servers } from '../rig.ts'
import type { Workload } from './workload.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const changedShare = 0.01

interface Run {
  seconds: number
  /** User and system, of all threads. */
  cpuSeconds: number
  peakMb: number
}

/** `postrider audiences sync`, as users run it: first the whole list, then one with 1 % changed. */
export const audiences: Workload = {
  name: 'audiences',
  summary: 'a first sync of an audience (1,000,000 members), and a second one with 1 % changed',
  run: async (servers: Servers, { calls: members = 1_000_000 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    try {
      await deployment.destination('crm', 'shop', ['http://127.0.0.1:9/hook'])
      await deployment.close()
      const env = { ...deployment.env, STORE_PATH: folder }
      await command(env, ['audiences', 'create', '--id', 'vip', '--name', 'VIP', '--source', 'shop'])
      const changed = Math.round(members * changedShare)
      const lists = [0, changed / 2].map((from) => ({ file: join(folder, `ids-${from}.txt`), from }))
      const runs: Run[] = []
      for (const { file, from } of lists) {
        await writeIds(file, from, members)
        runs.push(await command(env, ['audiences', 'sync', 'vip', file]))
      }
      const [first, second] = runs as [Run, Run]
      return {
        rows: [
          ...[first, second].map(({ seconds, cpuSeconds }, index) => ({
            what: index === 0 ? 'first sync' : 'second sync',
            unit: 'users/s',
            value: Math.round(members / seconds),
            cpu: cpuSeconds / seconds,
          })),
          { what: 'peak memory, first', unit: 'MB', value: first.peakMb },
          { what: 'peak memory, second', unit: 'MB', value: second.peakMb },
        ],
        ratio: first.seconds / second.seconds,
        goal: 5,
        verdict: null,
        detail: { members, changed, first, second },
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

/** In an order of its own, as exports are: not sorted. */
async function writeIds(file: string, from: number, count: number): Promise<void> {
  const out = createWriteStream(file)
  // 7,919 is prime and no divisor of any count of interest.
  for (let index = 0; index < count; index++) {
    const id = from + ((index * 7_919) % count)
    if (!out.write(`user-${String(id).padStart(9, '0')}\n`)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
}

async function command(env: Record<string, string>, args: string[]): Promise<Run> {
  const began = performance.now()
  const node = [process.execPath, main, ...args]
  // Kafka has the other core: its own speed is not what is measured.
  const [program, ...rest] = bindsCores ? ['taskset', '-c', String(measuredCore), ...node] : node
  const child = spawn(program!, rest, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  let [peakMb, cpuSeconds] = [0, 0]
  const sample = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    peakMb = Math.max(peakMb, Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024))
    const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8').catch(() => '')
    // utime and stime, in hundredths of a second.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    cpuSeconds = Math.max(cpuSeconds, (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100)
  }, 20)
  const [code] = (await once(child, 'exit')) as [number]
  clearInterval(sample)
  if (code !== 0) throw new Error(`postrider ${args.join(' ')} ended with ${code}`)
  return { seconds: (performance.now() - began) / 1_000, cpuSeconds, peakMb }
}
