import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CommitWatch } from './commit-watch.ts'
import { gatherEvidence } from './evidence.ts'
import type { FaultContext } from './fault.ts'
import { Findings } from './findings.ts'
import { ForwarderSeat } from './fleet.ts'
import { Load } from './load.ts'
import type { Options } from './options.ts'
import { Random } from './random.ts'
import { startReceivers, type Receivers } from './receivers.ts'
import { makeReport, type Report } from './report.ts'
import { Rig, tierSets, windowMs } from './rig.ts'
import { Schedule } from './schedule.ts'
import { createSettings } from './settings-faults.ts'
import { settle } from './settling.ts'
import { UsageWatch } from './usage-watch.ts'
import { judge } from './verdict.ts'

const progressMs = 30_000
/** From here on one process lives through the whole run, to be watched. */
const elderFromMinutes = 20
const settleMs = windowMs + 240_000
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** One run from its seed to its report. Whatever it started is gone when it resolves or rejects. */
export async function run(
  options: Options,
  folder: string,
  tell: (text: string) => void,
  signal: AbortSignal,
): Promise<Report> {
  const began = Date.now()
  const findings = new Findings()
  const closing: (() => Promise<unknown>)[] = []
  try {
    const arrivalsFile = join(folder, 'arrivals.txt')
    const receivers = await startReceivers(options.seed, arrivalsFile)
    closing.push(() => receivers.close())
    const rig = await Rig.start(folder)
    closing.push(() => rig.close())
    await createSettings(rig, receivers)
    const seats = makeSeats(options, rig, folder, findings)
    closing.push(() => Promise.all(seats.map((seat) => seat.kill())))
    await Promise.all(seats.map((seat) => seat.start()))
    await Promise.all(seats.map((seat) => seat.ready(90_000)))
    const watch = new CommitWatch(rig)
    watch.start()
    closing.push(() => watch.stop())
    const load = new Load(rig, options.seed, options.rate)
    await load.start()
    closing.push(() => load.stop())
    const elder = seats[0]!
    const usage = new UsageWatch(elder)
    closing.push(async () => usage.stop())
    tell(`${seats.length} forwarders work, faults begin`)

    const schedule = new Schedule(options, new Random(options.seed), tell)
    const context: FaultContext = {
      ...{ rig, seats, receivers, random: new Random(0) },
      mortals: options.minutes >= elderFromMinutes ? seats.slice(1) : seats,
      finding: (text) => {
        findings.add('what faults must not lead to', text)
        tell(`FINDING ${text}`)
      },
      infrastructureFailed: (since) => schedule.infrastructureFailed(since),
    }
    const until = Date.now() + options.minutes * 60_000
    const isOver = () => signal.aborted || (Date.now() >= until && load.acknowledged >= options.calls)
    const stopTelling = tellProgress(load, receivers, schedule, elder, tell)
    closing.push(async () => stopTelling())
    await schedule.run(context, isOver)
    signal.throwIfAborted()
    await load.stop()
    tell(`${load.acknowledged} calls written, no more faults; waiting until all is seen through`)
    await settle(rig, watch, settleMs, findings, signal)
    signal.throwIfAborted()
    usage.stop()
    usage.judge(findings)
    for (const seat of seats) {
      const { text, inGoodOrder } = await seat.terminate(40_000)
      if (!inGoodOrder) findings.add('ends', `${seat.name}: ${text}`)
      for (const line of await seat.complaints()) findings.add('complaints of forwarders', line.slice(0, 600))
    }
    await watch.stop()
    await receivers.finish()
    stopTelling()
    tell('reading what lies in Kafka and what receivers saw')
    const evidence = await gatherEvidence(rig, arrivalsFile)
    const { injected } = schedule
    const { seed } = options
    const tally = judge({ evidence, watch, rig, seed, acknowledged: load.acknowledged, injected }, findings)
    const notChecked = await audit(rig, findings, tell)
    return makeReport({ options, began, tally, schedule, findings, usage, notChecked })
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {})
  }
}

function makeSeats(options: Options, rig: Rig, folder: string, findings: Findings): ForwarderSeat[] {
  const count = options.processes + (options.minutes >= elderFromMinutes ? 1 : 0)
  return Array.from(
    { length: count },
    (_, index) =>
      new ForwarderSeat({
        name: `forwarder-${index + 1}`,
        folder: join(folder, 'forwarders'),
        env: rig.forwarderEnv(),
        tiers: tierSets[0],
        onUnexpectedExit: (text) => findings.add('ends', text),
      }),
  )
}

function tellProgress(
  load: Load,
  receivers: Receivers,
  schedule: Schedule,
  elder: ForwarderSeat,
  tell: (text: string) => void,
): () => void {
  const timer = setInterval(() => {
    void elder.usage().then((usage) => {
      const { requests, wrong } = receivers.counts()
      const memory = usage ? `, ${elder.name} ${Math.round(usage.rssMb)} MB and ${usage.files} files` : ''
      tell(
        `${load.acknowledged} calls, ${requests} requests (${wrong} wrong), ${schedule.injected.length} faults${memory}`,
      )
    })
  }, progressMs)
  return () => clearInterval(timer)
}

/** Postrider's own proof over the same topics. Returns what could not be checked. */
async function audit(rig: Rig, findings: Findings, tell: (text: string) => void): Promise<string[]> {
  tell('postrider audit')
  try {
    await promisify(execFile)(process.execPath, [main, 'audit', '--json'], {
      env: rig.commandEnv(),
      maxBuffer: 64 * 1024 * 1024,
    })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    const said = `${stderr}${stdout}`.slice(0, 4_000)
    if (said.includes("unknown command 'audit'")) return ['postrider audit: there is no such command']
    findings.add('audit', said)
  }
  return []
}
