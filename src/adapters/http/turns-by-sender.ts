/**
 * Lets a number of tasks run at a time. Those that wait begin sender by sender, in turn: whoever sends many at once
 * keeps no other waiting for all of them.
 */
export class TurnsBySender {
  #free: number
  /** Senders in the order of their turns; none is without tasks. */
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  async run<T>(sender: string, task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((begin) => this.#wait(sender, begin))
    try {
      return await task()
    } finally {
      this.#goOn()
    }
  }

  #wait(sender: string, begin: () => void): void {
    const tasks = this.#waiting.get(sender)
    if (tasks === undefined) this.#waiting.set(sender, [begin])
    else tasks.push(begin)
  }

  /** One has ended: the next one takes its place. */
  #goOn(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free++
      return
    }
    const [sender, tasks] = next
    this.#waiting.delete(sender)
    tasks.shift()!()
    if (tasks.length > 0) this.#waiting.set(sender, tasks)
  }
}
