import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BusyWindow } from '../../../src/core/pacing/busy-window.ts'

/**
 * A process that always has more to send, to a receiver that answers after `roundTripMs`, on a virtual clock: an event
 * loop whose every turn takes the answers that are there, at `costMs` each with the request that follows it.
 */
class Process {
  readonly window: BusyWindow
  readonly #answersAt: number[] = []
  readonly #costMs: number
  roundTripMs: number
  now = 0
  idleMs = 0

  constructor(max: number, costMs: number, roundTripMs: number) {
    this.window = new BusyWindow(max)
    this.#costMs = costMs
    this.roundTripMs = roundTripMs
  }

  get inFlight(): number {
    return this.#answersAt.length
  }

  run(ms: number): void {
    const end = this.now + ms
    while (this.now < end) {
      const startOfTurn = this.now
      while (this.#answersAt.length > 0 && this.#answersAt[0]! <= startOfTurn) {
        this.#answersAt.shift()
        this.window.answered()
        this.#send()
      }
      this.window.turned(this.inFlight)
      this.#send()
      if (this.now > startOfTurn) continue
      this.now += emptyTurnMs
      this.idleMs += emptyTurnMs
    }
  }

  #send(): void {
    while (this.inFlight < this.window.size) {
      this.now += this.#costMs
      this.#answersAt.push(this.now + this.roundTripMs)
    }
  }
}

const emptyTurnMs = 0.01

test('whatever the latency of receivers, the process is kept busy with little more on the wire than that needs', () => {
  const costs = fc.double({ min: 0.02, max: 0.2, noNaN: true })
  const roundTrips = fc.double({ min: 0, max: 100, noNaN: true })
  fc.assert(
    fc.property(costs, roundTrips, (costMs, roundTripMs) => {
      const process = new Process(100_000, costMs, roundTripMs)
      process.run(1_000 + 10 * roundTripMs)
      process.idleMs = 0
      process.run(1_000)
      assert.ok(process.idleMs < 60, `${process.idleMs} ms of a second idle`)
      const needed = roundTripMs / costMs
      assert.ok(process.inFlight <= 40 + needed * 1.5, `${process.inFlight} on the wire, ${needed} needed`)
    }),
    { numRuns: 100 },
  )
})

test('a receiver that becomes slow costs a few turns of the event loop, and the window shrinks again when it is fast', () => {
  const process = new Process(4_096, 0.05, 0.2)
  process.run(1_000)
  const usual = process.inFlight
  assert.ok(usual <= 40, `${usual} on the wire`)
  process.roundTripMs = 100
  process.idleMs = 0
  process.run(500)
  assert.ok(process.inFlight >= 2_000, `${process.inFlight} on the wire`)
  assert.ok(process.idleMs < 25, `${process.idleMs} ms idle`)
  process.roundTripMs = 0.2
  process.run(2_000)
  assert.ok(process.inFlight <= 50, `${process.inFlight} on the wire`)
})

test('the window never grows beyond the process’s limit', () => {
  const window = new BusyWindow(100)
  for (let turns = 0; turns < 100; turns++) window.turned(window.size)
  assert.equal(window.size, 100)
  assert.equal(new BusyWindow(4).size, 4)
})
