/** What a run is made of, beside its flags. */
export interface Scenario {
  /** Forwarders, unless told. */
  processes: number
  /** The share of the calls that go through the collector. */
  httpShare: number
  /** All calls are of this source; null: the usual mixture. */
  onlySource: string | null
  /** How long a delivery is tried. */
  windowMs: number
  /** Whether a console does what side-work.ts has. */
  hasSideWork: boolean
}

export type ScenarioName = 'random' | 'rolling'

export const scenarios: Record<ScenarioName, Scenario> = {
  random: { processes: 3, httpShare: 0.6, onlySource: null, windowMs: 30_000, hasSideWork: true },
  // As users' clusters are upgraded, and long enough for each delivery to be made.
  rolling: { processes: 1, httpShare: 1, onlySource: 'calm', windowMs: 600_000, hasSideWork: false },
}

export const isScenario = (name: string): name is ScenarioName => Object.hasOwn(scenarios, name)
