import { parseArgs } from 'node:util'
import { randomInt } from 'node:crypto'
import { faultKinds, type FaultKind } from './fault-kinds.ts'

export interface Options {
  seed: number
  /** How long faults go on. What is open then is seen through without any. */
  minutes: number
  /** At least so many calls: the run goes on, faults and all, until they are written. */
  calls: number
  /** A second. */
  rate: number
  processes: number
  /** Each of these comes once before any comes a second time. */
  kinds: readonly FaultKind[]
  /** Ends once each kind has come, however many minutes are left. */
  once: boolean
  /** How long the broker is away in the one long outage; 0: there is none. */
  longOutageMs: number
  /** What takes its time may take so many times as long: more on a machine that has much else to do. */
  patience: number
  /** Where the report goes, as JSON. */
  report: string | null
  /** Where logs and records of requests are kept; else they are removed after a run without findings. */
  folder: string | null
}

export const usage = `npm run test:faults -- [flags]

  --seed N            reproduces what was chosen in a run (any, unless given; it is printed)
  --minutes M         how long faults go on (5)
  --calls N           at least so many calls (0)
  --rate N            calls a second (300)
  --processes N       forwarders (3)
  --kinds A,B         only these kinds of faults: ${faultKinds.join(' ')}
  --once              each kind once, then the end
  --long-outage S     one outage of the broker of so many seconds (600 from 30 minutes on, else none)
  --patience N        times are judged N times as leniently (1), for a machine that has much else to do;
                      what it gives up is counted then, and no more
  --report FILE       the report as JSON; while the run goes on, what is known so far
  --folder FOLDER     keep logs and records there

The first SIGINT or SIGTERM ends the faults, and what there is is judged; a second one breaks the run off.`

/** Throws an Error that names what is wrong. */
export function parseOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      ...{ seed: text, minutes: text, calls: text, rate: text, processes: text, kinds: text },
      ...{ 'long-outage': text, patience: text, report: text, folder: text },
      once: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) return 'help'
  const number = (
    name: 'seed' | 'minutes' | 'calls' | 'rate' | 'processes' | 'long-outage' | 'patience',
    usual: number,
  ) => {
    const given = values[name]
    if (given === undefined) return usual
    const value = Number(given)
    if (given.trim() === '' || !Number.isFinite(value) || value < 0)
      throw new Error(`--${name} takes a number, not ${JSON.stringify(given)}`)
    return value
  }
  const kinds = values.kinds?.split(',') ?? faultKinds
  for (const kind of kinds)
    if (!faultKinds.includes(kind as FaultKind))
      throw new Error(`--kinds: ${JSON.stringify(kind)} is none of ${faultKinds.join(', ')}`)
  const minutes = number('minutes', 5)
  return {
    seed: Math.floor(number('seed', randomInt(2 ** 32))) % 2 ** 32,
    minutes,
    calls: number('calls', 0),
    rate: Math.max(1, number('rate', 300)),
    processes: Math.max(2, number('processes', 3)),
    kinds: kinds as FaultKind[],
    once: values.once ?? false,
    longOutageMs: number('long-outage', minutes >= 30 ? 600 : 0) * 1_000,
    patience: Math.max(1, number('patience', 1)),
    report: values.report ?? null,
    folder: values.folder ?? null,
  }
}
