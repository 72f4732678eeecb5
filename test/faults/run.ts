import { join } from 'node:path'
import { messageOf } from '../../src/errors.ts'
import { freePort } from '../../src/local/ports.ts'
import { audit } from './evidence/audit.ts'
import { CommitWatch } from './watch/commit-watch.ts'
import { gatherEvidence } from './evidence/evidence.ts'
import type { FaultContext } from './kinds/fault.ts'
import { Findings } from './evidence/findings.ts'
import type { Seat } from './fleet.ts'
import { HttpLoad, judgeAnswers } from './load/http-load.ts'
import { LeaderWatch } from './watch/leader-watch.ts'
import { Load } from './load/load.ts'
import type { Options } from './options.ts'
import { Random } from './random.ts'
import { OwnerWatch } from './watch/owner-watch.ts'
import { ProgressWatch } from './watch/progress-watch.ts'
import { startReceivers } from './load/receivers.ts'
import { makeProgress, type Progress, type Report, type RunState } from './report.ts'
import { Rig } from './rig.ts'
import { scenarios } from './scenarios.ts'
import { Schedule } from './schedule.ts'
import { hasElder, makeSeat, makeSeats } from './load/seats.ts'
import { createSettings } from './kinds/settings-faults.ts'
import { settle } from './settling.ts'
import { Traffic } from './load/traffic.ts'
import { judgeSide } from './evidence/side-verdict.ts'
import { SideWork } from './load/side-work.ts'
import { UsageWatch } from './watch/usage-watch.ts'
import { judge } from './evidence/verdict.ts'

const progressMs = 60_000
const settleMs = 240_000
/** A collector waits for Kafka for 5 s. */
const answerMs = 6_000
/** How long a batch may be tried after the last fault. */
const takenMs = 60_000
/** How long replays may take that read all of an hour again. */
const replayedMs = 600_000
const adminToken = 'a-token-of-the-fault-suite-0123456789'

/** How a run is watched and ended from outside. */
export interface RunControl {
  tell(text: string): void
  /** What is known so far: at the beginning, every minute, and when the run goes over to something else. */
  progress(report: Progress): Promise<void>
  /** No more faults: what there is is judged. */
  enough: AbortSignal
  /** Breaks the run off. */
  signal: AbortSignal
}

/** One run from its seed to its report. Whatever it started is gone when it resolves or rejects. */
export async function run(options: Options, folder: string, control: RunControl): Promise<Report> {
  const { tell, signal, enough } = control
  const began = Date.now()
  const findings = new Findings()
  const { httpShare, onlySource: only, windowMs, hasSideWork } = scenarios[options.scenario]
  const closing: (() => Promise<unknown>)[] = []
  try {
    const receivers = await startReceivers(options, folder)
    closing.push(() => receivers.close())
    const rig = await Rig.start(folder, {
      brokers: options.brokers,
      withDisk: options.kinds.includes('disk-full'),
      windowMs,
    })
    closing.push(() => rig.close())
    signal.throwIfAborted()
    await createSettings(rig, receivers)
    const seatParts = { options, rig, receivers, folder, findings }
    const seats = makeSeats(seatParts)
    const ports = { collector: await freePort(), console: await freePort() }
    const collector = makeSeat('collector', 'collector', {
      ...seatParts,
      env: { COLLECTOR_PORT: String(ports.collector) },
    })
    const console = makeSeat('console', 'console', {
      ...seatParts,
      env: {
        CONSOLE_PORT: String(ports.console),
        ADMIN_TOKEN: adminToken,
        STORE_PATH: join(folder, 'store'),
      },
    })
    const parts = [...seats, collector, ...(hasSideWork ? [console] : [])]
    closing.push(() => Promise.all(parts.map((seat) => seat.kill())))
    await Promise.all(parts.map((seat) => seat.start()))
    await Promise.all(parts.map((seat) => seat.ready(90_000 * options.patience)))
    const watch = new CommitWatch(rig)
    closing.push(() => watch.stop())
    await watch.start((error) => findings.add('commits that cannot be read', messageOf(error)))
    const owners = new OwnerWatch(rig)
    owners.start()
    closing.push(() => owners.stop())
    const leaders = new LeaderWatch(rig)
    leaders.start()
    closing.push(() => leaders.stop())
    const traffic = new Traffic(options.seed, { httpShare, only })
    const load = new Load(rig, traffic, options.rate)
    await load.start()
    closing.push(() => load.stop())
    const url = `http://127.0.0.1:${ports.collector}`
    const http = new HttpLoad({ url, traffic, rate: options.rate, boundMs: answerMs * options.patience })
    http.start()
    closing.push(() => http.stop(0))
    const side = new SideWork({
      collectorUrl: url,
      consoleUrl: `http://127.0.0.1:${ports.console}`,
      token: adminToken,
      random: new Random(options.seed).fork(),
      findings,
    })
    if (hasSideWork) await side.start()
    closing.push(() => side.stop(0))
    // What it asks for then is not worth waiting for, which may take as long as brokers are away.
    const breakOff = () => side.client.stop()
    signal.addEventListener('abort', breakOff, { once: true })
    closing.push(async () => signal.removeEventListener('abort', breakOff))
    const elder = seats[0]!
    const usage = new UsageWatch(elder)
    closing.push(async () => usage.stop())
    tell(`${seats.length} forwarders work, faults begin`)

    const schedule = new Schedule(options, new Random(options.seed), tell)
    const context: FaultContext = {
      ...{ rig, seats, collector, console, parts, receivers, random: new Random(0) },
      mortals: hasElder(options) ? seats.slice(1) : seats,
      patience: options.patience,
      rounds: options.rounds,
      step: () => {},
      finding: (text) => {
        findings.add('what faults must not lead to', text)
        tell(`FINDING ${text}`)
      },
      infrastructureFailed: (since) => schedule.infrastructureFailed(since),
    }
    const moving = new ProgressWatch({
      ...{ watch, groups: [rig.config.groupId, `${rig.config.groupId}.retries`], patience: options.patience },
      wasBroken: (since) => schedule.infrastructureFailed(since),
      finding: context.finding,
    })
    closing.push(async () => moving.stop())
    const until = Date.now() + options.minutes * 60_000
    const isOver = () =>
      signal.aborted || enough.aborted || (Date.now() >= until && traffic.acknowledged >= options.calls)
    let state: RunState = 'faults'
    const progress = () =>
      makeProgress({
        ...{ state, options, began, schedule, findings, usage },
        ...{ calls: traffic.acknowledged, answers: http.answers, requests: receivers.counts() },
      })
    const write = (next: RunState = state) => {
      state = next
      return control.progress(progress())
    }
    // Whatever ends the run, it is known what it did.
    closing.push(() => write(state === 'ended' ? 'ended' : 'broken off'))
    const stopTelling = reportProgress(progress, elder, tell, write)
    closing.push(async () => stopTelling())
    await write()
    await (options.scenario === 'rolling' ? schedule.roll(context, isOver) : schedule.run(context, isOver))
    signal.throwIfAborted()
    if (hasSideWork) {
      receivers.fix()
      const isBroken = options.kinds.includes('broker-restarted')
      const replay = () => side.replay(replayedMs * options.patience)
      if (!(await (isBroken ? schedule.during(context, replay) : replay())))
        findings.add('side work that is not done', 'the replay of dead letters, in time')
    }
    moving.stop()
    await load.stop()
    const unanswered = await http.stop(takenMs * options.patience)
    if (unanswered > 0) findings.add('batches that the collector does not take', String(unanswered))
    judgeAnswers(http.answers, findings)
    if (hasSideWork && !(await side.stop(replayedMs * options.patience)))
      findings.add('side work that is not done', 'in time')
    tell(`${traffic.acknowledged} calls written, no more faults; waiting until all is seen through`)
    await write('seeing it through')
    await settle(rig, watch, (windowMs + settleMs) * options.patience, findings, signal)
    signal.throwIfAborted()
    usage.stop()
    usage.judge(findings)
    for (const seat of parts) {
      const { text, inGoodOrder } = await seat.terminate(40_000 * options.patience)
      if (!inGoodOrder) findings.add('ends', `${seat.name}: ${text}`)
      for (const line of await seat.complaints()) findings.add('complaints', line.slice(0, 600))
    }
    await Promise.all([watch.stop(), owners.stop(), leaders.stop()])
    await receivers.finish()
    stopTelling()
    await write('judging')
    tell('reading what lies in Kafka and what receivers saw')
    const evidence = await gatherEvidence(rig, receivers.file)
    const { injected } = schedule
    const { patience } = options
    const { moves } = receivers
    const tally = judge(
      { evidence, watch, owners, leaders, rig, traffic, injected, moves, patience },
      findings,
    )
    const { settingsEvents: settings } = rig
    const sideTally = judgeSide({ notes: side.notes, settings, evidence: evidence.side }, findings)
    tally.wronglyDelivered += sideTally.wronglyDelivered
    tell('postrider audit')
    const notChecked = await audit(rig, findings)
    state = 'ended'
    return {
      ...progress(),
      passed: findings.isEmpty,
      tally,
      side: hasSideWork ? sideTally : null,
      moves: owners.moves,
      leaderMoves: leaders.moves,
      notChecked,
    }
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {})
  }
}

function reportProgress(
  progress: () => Progress,
  elder: Seat,
  tell: (text: string) => void,
  write: () => Promise<void>,
): () => void {
  const timer = setInterval(() => {
    void elder.usage().then((usage) => {
      const { calls, requests, wrongRequests, injected } = progress()
      const goingOn = injected
        .filter(({ to }) => to === Infinity)
        .map(({ kind, step }) => `; ${kind} ${step}`)
      const memory = usage ? `, ${elder.name} ${Math.round(usage.rssMb)} MB and ${usage.files} files` : ''
      tell(
        `${calls} calls, ${requests} requests (${wrongRequests} wrong), ${injected.length} faults${memory}${goingOn.join('')}`,
      )
    })
    void write()
  }, progressMs)
  return () => clearInterval(timer)
}
