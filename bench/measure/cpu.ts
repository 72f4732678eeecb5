import { readFile } from 'node:fs/promises'
import { monotonicMs } from './clock.ts'

/** Shares of one core by process, from `watchCpu` to the call of `end`; empty where they are not to be had. */
export interface CpuUse {
  shares: Record<string, number>
  /** How busy the core was, with all processes on it; null where the system does not report it. */
  otherCore: number | null
}

/** Linux counts in hundredths of a second. */
const tickMs = 10

export async function watchCpu(
  pids: Record<string, number>,
  core: number,
): Promise<{ end(): Promise<CpuUse> }> {
  const read = async () => ({
    at: monotonicMs(),
    used: await Promise.all(Object.values(pids).map((pid) => processMs(pid))),
    core: await coreTicks(core),
  })
  const before = await read()
  return {
    async end() {
      const after = await read()
      const elapsed = after.at - before.at
      const shares: Record<string, number> = {}
      Object.keys(pids).forEach((name, index) => {
        const [from, to] = [before.used[index]!, after.used[index]!]
        if (from !== null && to !== null) shares[name] = round((to - from) / elapsed)
      })
      const total = before.core && after.core ? after.core.total - before.core.total : 0
      return {
        shares,
        otherCore: total > 0 ? round(1 - (after.core!.idle - before.core!.idle) / total) : null,
      }
    },
  }
}

/** User and system time of a process so far, in ms; null when it is gone or this is not Linux. */
export async function processMs(pid: number): Promise<number | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return null
  }
}

async function coreTicks(core: number): Promise<{ total: number; idle: number } | null> {
  try {
    const line = (await readFile('/proc/stat', 'utf8'))
      .split('\n')
      .find((each) => each.startsWith(`cpu${core} `))
    if (!line) return null
    // user nice system idle iowait irq softirq steal; guests are counted within user.
    const ticks = line.split(' ').slice(1, 9).map(Number)
    return { total: ticks.reduce((sum, each) => sum + each, 0), idle: ticks[3]! + ticks[4]! }
  } catch {
    return null
  }
}

const round = (value: number): number => Math.round(value * 100) / 100
