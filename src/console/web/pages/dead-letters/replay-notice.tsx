import { countOf, countText } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { sentence } from '../../components/notices.tsx'
import { Progress } from '../../components/progress.tsx'
import { runningReplay, type RunningReplay } from './replay-in-progress.ts'

/** How far the replay is that runs, with its end; or what came of the last one. */
export function ReplayNotice() {
  const { value } = runningReplay
  if (value === null) return null
  return (
    <section class="card replay-notice" aria-label="Replay">
      <div>
        <h2>
          Replay of <span class="foreign">{value.what}</span>
        </h2>
        {value.is === 'running' ? (
          <Progress label="Sent again" done={sentOf(value)} total={value.total} />
        ) : (
          <p role="status">{endText(value)}</p>
        )}
      </div>
      {value.is === 'running' ? (
        <button type="button" class="button" onClick={value.cancel}>
          Stop the replay
        </button>
      ) : (
        <button
          type="button"
          class="icon-button"
          aria-label="Close message about the replay"
          onClick={() => void (runningReplay.value = null)}
        >
          <Icon name="close" />
        </button>
      )}
    </section>
  )
}

const sentOf = (value: { total: number; counts: { replayed: number } | null }): number =>
  Math.min(value.counts?.replayed ?? 0, value.total)

function endText(value: Exclude<RunningReplay, { is: 'running' }>): string {
  if (value.is === 'done') {
    const { replayed, refused } = value.report
    const rest = refused > 0 ? ` ${countText(refused)} could not be replayed.` : ''
    return `All ${countOf(replayed, 'dead letter')} were sent again.${rest} Those that fail once more come back as new dead letters.`
  }
  const sent = `At least ${countText(sentOf(value))} of ${countText(value.total)} were sent again.`
  if (value.is === 'stopped') return `Stopped. ${sent} The same replay repeats those, and goes on.`
  return `${sentence(value.failure.message)} ${sent}`
}
