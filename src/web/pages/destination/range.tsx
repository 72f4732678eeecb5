import { absoluteText } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { chooseWindow, type Period } from './period.ts'

/** The period that was chosen in a plot, and the way back from it. */
export function Range({ range: { from, to } }: { range: NonNullable<Period['range']> }) {
  const text = (at: number) => absoluteText(at).slice(0, 16)
  return (
    <button type="button" class="button button-small" onClick={() => chooseWindow('1h')}>
      {`${text(from)} – ${text(to).slice(11)}`}
      <Icon name="close" />
      <span class="hidden">: back to the last hour</span>
    </button>
  )
}
