// Whether Kafka or the console is away, as the last answers say.
import { signal } from '@preact/signals'
import { ApiFailure, request, whenAway } from './request.ts'

export interface Away {
  what: 'kafka' | 'console'
  /** Epoch ms: when it was missed first. */
  since: number
}

export const away = signal<Away | null>(null)

/** Between two looks, in ms. */
const againMs = 5_000
let isLooking = false

/** From the first request that was not answered for want of one of them, until both are there again. */
export function watchWhatIsAway(): void {
  whenAway(() => void look())
}

async function look(): Promise<void> {
  if (isLooking) return
  isLooking = true
  try {
    for (let what = await missing(); what !== null; what = await missing()) {
      if (away.value?.what !== what) away.value = { what, since: Date.now() }
      await new Promise((resolve) => window.setTimeout(resolve, againMs))
    }
    away.value = null
  } finally {
    isLooking = false
  }
}

/** What is asked for needs nothing but Kafka: other answers may be missing for another reason. */
async function missing(): Promise<Away['what'] | null> {
  try {
    await request('GET /destinations', { query: { limit: 1 } })
    return null
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    return error.code === 'unreachable' ? 'console' : error.code === 'unavailable' ? 'kafka' : null
  }
}
