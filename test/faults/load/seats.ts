import { join } from 'node:path'
import type { Findings } from '../evidence/findings.ts'
import { Seat, type Command } from '../fleet.ts'
import type { Options } from '../options.ts'
import type { Receivers } from './receivers.ts'
import { tierSets, type Rig } from '../rig.ts'

/** From here on one process lives through the whole run, to be watched. */
const elderFromMinutes = 20

export const hasElder = ({ minutes, scenario }: Options): boolean =>
  scenario === 'random' && minutes >= elderFromMinutes

export interface SeatParts {
  options: Options
  rig: Rig
  receivers: Receivers
  folder: string
  findings: Findings
  env?: Record<string, string>
}

/** The forwarders: with a long run one more, which no fault ends. */
export function makeSeats(parts: SeatParts): Seat[] {
  const { options } = parts
  const count = options.processes + (hasElder(options) ? 1 : 0)
  return Array.from({ length: count }, (_, index) => makeSeat('forwarder', `forwarder-${index + 1}`, parts))
}

/** The place of one process, which reaches the brokers through the proxies. */
export function makeSeat(
  command: Command,
  name: string,
  { options, rig, receivers, folder, findings, env = {} }: SeatParts,
): Seat {
  return new Seat({
    ...{ command, name, folder: join(folder, 'processes') },
    env: { ...rig.partEnv(), ...receivers.env, ...env },
    tiers: tierSets[0],
    patience: options.patience,
    onUnexpectedExit: (text) => findings.add('ends', text),
  })
}
