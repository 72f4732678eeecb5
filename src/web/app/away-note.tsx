import { away, type Away } from '../api/away.ts'
import { clockText } from '../components/figures.ts'
import { Icon } from '../components/icon.tsx'
import { now } from '../components/time.tsx'

const texts: Record<Away['what'], (since: string) => string> = {
  kafka: (since) =>
    `The console cannot read Kafka since ${since}. While Kafka is away calls are refused and nothing is delivered; nothing that was accepted is lost.`,
  console: (since) =>
    `The console does not answer since ${since}. Calls are taken and delivered without it; nothing is lost.`,
}

/** On every page: what is away, and what that means for calls. */
export function AwayNote() {
  if (away.value === null) return null
  const { what, since } = away.value
  return (
    <div class="notice notice-bad" role="status">
      <Icon name="warning" />
      <div>
        <p>{texts[what](clockText(since, now.value))}</p>
      </div>
    </div>
  )
}
