// Which test files share a process, and which process starts next. No file is read and nothing is started here.

/** One process of the run, with the files whose tests it runs one after another. */
export interface TestProcess {
  /** As the report names it: the file, or what its files have in common. */
  name: string
  files: readonly string[]
}

/** How long files took, and what they took of the processors with their children; both in seconds. */
export interface TestTimes {
  seconds: Readonly<Record<string, number>>
  cpu: Readonly<Record<string, number>>
}

/** Tests mostly wait for brokers and timers, so more of them run at once than there are cores. */
const maxAtOnce = 6
/** These run however busy the machine is. */
const minAtOnce = 2
/** Below this share of idle time no further file is started: tests wait for things with a deadline. */
const minIdle = 0.25
/** Of a file that is new. */
const assumedSeconds = 10

/** Three brokers take most of two cores, and these tests watch how soon leaders move: one of them runs at a time. */
export const startsCluster = (file: string): boolean => file.endsWith('.cluster.test.ts')
/** Beside a cluster run only files that wait for at least that long and take at most that share of one core. */
const quiet = { minSeconds: 60, maxShare: 0.35, maxAtOnce: 2 }

/** Most tests there decide and compare: they start nothing, so one process a folder loads what they share once. */
const sharedFolders = ['test/core/', 'test/forwarder/', 'test/web/']
/** What measures or changes its process needs one of its own, and so does what is to happen around each test of a file. */
const needsOwnProcess = /\bprocess\.|\bperformance\.|node:v8|^(?:before|after)(?:Each)?\(/m

/** @param texts of the files */
export function processesOf(texts: ReadonlyMap<string, string>): TestProcess[] {
  const shared = new Map<string, string[]>(sharedFolders.map((folder) => [folder, []]))
  const processes: TestProcess[] = []
  const runAlone = (file: string) => processes.push({ name: file, files: [file] })
  for (const [file, text] of texts) {
    const folder = sharedFolders.find((each) => file.startsWith(each))
    if (folder !== undefined && !needsOwnProcess.test(text)) shared.get(folder)!.push(file)
    else runAlone(file)
  }
  for (const [folder, files] of shared)
    if (files.length < 2) files.forEach(runAlone)
    else processes.push({ name: `${files.length} files of ${folder}`, files })
  return processes
}

/** What runs and what is to run. */
export class TestSchedule {
  readonly #waiting: TestProcess[]
  readonly #clusters: TestProcess[]
  /** Kept for the time when clusters run; empty where none does. */
  readonly #quiet: TestProcess[]
  readonly #running = new Set<TestProcess>()
  readonly #besideClusters: ReadonlySet<TestProcess>

  /** What takes longest comes first, so that the end of the run is not spent waiting for one file. */
  constructor(processes: readonly TestProcess[], times: TestTimes) {
    const seconds = ({ files }: TestProcess): number =>
      files.reduce((sum, file) => sum + (times.seconds[file] ?? assumedSeconds), 0)
    const ordered = processes.toSorted((a, b) => seconds(b) - seconds(a) || (a.name < b.name ? -1 : 1))
    const isQuiet = ({ name }: TestProcess): boolean => {
      const [wall, cpu] = [times.seconds[name], times.cpu[name]]
      return (
        wall !== undefined && cpu !== undefined && wall >= quiet.minSeconds && cpu <= wall * quiet.maxShare
      )
    }
    this.#clusters = ordered.filter(({ name }) => startsCluster(name))
    const others = ordered.filter((each) => !this.#clusters.includes(each))
    this.#quiet = this.#clusters.length === 0 ? [] : others.filter(isQuiet)
    this.#besideClusters = new Set(this.#quiet)
    this.#waiting = others.filter((each) => !this.#besideClusters.has(each))
  }

  get isDone(): boolean {
    return this.#waiting.length + this.#clusters.length + this.#quiet.length + this.#running.size === 0
  }

  /** Whether it gives way to a cluster that runs at the same time. */
  yields(process: TestProcess): boolean {
    return this.#besideClusters.has(process)
  }

  /** Takes what is to start now, if anything. @param idle the share of time in which the machine's cores did nothing */
  next(idle: number): TestProcess | null {
    const hasRoom = this.#running.size < minAtOnce || (this.#running.size < maxAtOnce && idle >= minIdle)
    const loud = [...this.#running].filter((each) => !this.yields(each))
    const isClusterLeft = this.#clusters.length > 0 || loud.some(({ name }) => startsCluster(name))
    let from: TestProcess[] = []
    if (this.#waiting.length > 0) from = hasRoom ? this.#waiting : []
    else if (this.#clusters.length > 0 && loud.length === 0) from = this.#clusters
    else if (!isClusterLeft) from = hasRoom ? this.#quiet : []
    else if (this.#running.size - loud.length < quiet.maxAtOnce && idle >= minIdle) from = this.#quiet
    const process = from.shift() ?? null
    if (process) this.#running.add(process)
    return process
  }

  ended(process: TestProcess): void {
    this.#running.delete(process)
  }
}
