import { parseArgs } from 'node:util'
import { randomInt } from 'node:crypto'
import { clusterKinds, faultKinds, type FaultKind } from './kinds/fault-kinds.ts'

import { isScenario, scenarios, type ScenarioName } from './scenarios.ts'

export interface Options {
  seed: number
  /** How long faults go on. What is open then is seen through without any. */
  minutes: number
  /** Minimum number of calls: the run goes on, faults and all, until they are written. */
  calls: number
  /** A second. */
  rate: number
  processes: number
  /** One, or three. */
  brokers: 1 | 3
  /** Each of these comes once before any comes a second time. */
  kinds: readonly FaultKind[]
  /** Ends once each kind has come, however many minutes are left. */
  once: boolean
  /** What is done: `random` takes the kinds by chance. */
  scenario: ScenarioName
  /** How often around brokers are rolled. */
  rounds: number
  /** How long the broker is away in the one long outage; 0: there is none. */
  longOutageMs: number
  /** Factor by which timeouts are stretched: higher on a busy machine. */
  patience: number
  /** Where the report goes, as JSON. */
  report: string | null
  /** The report goes to stdout as JSON, and what else is said to stderr. */
  json: boolean
  /** Where logs and records of requests are kept; else they are removed after a run without findings. */
  folder: string | null
}

export const usage = `npm run test:faults -- [flags]

  --seed N            reproduces what was chosen in a run (any, unless given; it is printed)
  --minutes M         how long faults go on (5)
  --calls N           minimum number of calls (0)
  --rate N            calls a second (300)
  --processes N       forwarders (3)
  --brokers N         1 or 3 (3)
  --kinds A,B         only these kinds of faults: ${faultKinds.join(' ')}
  --scenario NAME     random (unless given), or rolling: each call through a collector, to a receiver that answers one
                      in five with 503 the first time, by one forwarder, while every 12 s some broker is stopped and
                      started again a few seconds later
  --once              each kind once, then the end
  --rounds N          how often around brokers are rolled, one after another (2)
  --long-outage S     one outage of the broker, in seconds (600 from 30 minutes on, else none)
  --patience N        times are judged N times as leniently (1), for a machine that has much else to do;
                      what it gives up is counted then, and no more
  --json              the report as JSON on stdout
  --report FILE       the report as JSON; while the run goes on, what is known so far
  --folder FOLDER     keep logs and records there

Each run has, among its receivers, a host that answers some calls twice, and one whose name leads to another address when
name-moved comes; one behind a token endpoint and one behind a proxy, which go away when tokens-away and proxy-away come;
one that cuts batches in the middle; and one whose calls keep the order of their users. What counts as delivered and no
receiver took is printed as "wrongly delivered", and is a finding.

The first SIGINT or SIGTERM ends the faults, and what there is is judged; a second one breaks the run off.`

/** Throws an Error that names what is wrong. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ seed: text, minutes: text, calls: text, rate: text, processes: text, brokers: text },
      ...{
        kinds: text,
        scenario: text,
        rounds: text,
        'long-outage': text,
        patience: text,
        report: text,
        folder: text,
      },
      once: { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return 'help'
  const number = (
    name:
      'seed' | 'minutes' | 'calls' | 'rate' | 'processes' | 'brokers' | 'rounds' | 'long-outage' | 'patience',
    usual: number,
  ) => {
    const given = values[name]
    if (given === undefined) return usual
    const value = Number(given)
    if (given.trim() === '' || !Number.isFinite(value) || value < 0)
      throw new Error(`--${name} takes a number, not ${JSON.stringify(given)}`)
    return value
  }
  const brokers = number('brokers', 3)
  if (brokers !== 1 && brokers !== 3) throw new Error(`--brokers takes 1 or 3, not ${brokers}`)
  const possible = faultKinds.filter((kind) => brokers > 1 || !clusterKinds.has(kind))
  const kinds = values.kinds?.split(',') ?? possible
  for (const kind of kinds) {
    if (!faultKinds.includes(kind as FaultKind))
      throw new Error(`--kinds: ${JSON.stringify(kind)} is none of ${faultKinds.join(', ')}`)
    if (!possible.includes(kind as FaultKind)) throw new Error(`--kinds: ${kind} needs three brokers`)
  }
  const minutes = number('minutes', 5)
  const scenario = values.scenario ?? 'random'
  if (!isScenario(scenario))
    throw new Error(
      `--scenario takes ${Object.keys(scenarios).join(' or ')}, not ${JSON.stringify(scenario)}`,
    )
  if (scenario === 'rolling' && brokers === 1) throw new Error('--scenario rolling needs three brokers')
  return {
    seed: Math.floor(number('seed', randomInt(2 ** 32))) % 2 ** 32,
    minutes,
    calls: number('calls', 0),
    rate: Math.max(1, number('rate', 300)),
    processes: Math.max(1, number('processes', scenarios[scenario].processes)),
    brokers,
    kinds: kinds as FaultKind[],
    once: values.once ?? false,
    scenario,
    rounds: Math.max(1, number('rounds', 2)),
    longOutageMs: number('long-outage', scenario === 'random' && minutes >= 30 ? 600 : 0) * 1_000,
    patience: Math.max(1, number('patience', 1)),
    report: values.report ?? null,
    json: values.json ?? false,
    folder: values.folder ?? null,
  }
}
