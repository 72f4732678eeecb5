import { wordsOf } from './figures.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** A state, by word and colour. */
export function Badge({ tone, text, title }: { tone: Tone; text: string; title?: string }) {
  return (
    <span class={`badge badge-${tone}`} title={title}>
      {text}
    </span>
  )
}

const tones: Record<string, Tone> = {
  active: 'good',
  troubled: 'warn',
  paused: 'warn',
  down: 'bad',
  gone: 'bad',
  disabled: 'plain',
}

export function DestinationBadge({ state }: { state: string }) {
  return <Badge tone={tones[state] ?? 'plain'} text={wordsOf(state)} />
}
