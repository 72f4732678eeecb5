import type { DeletionAnswer } from '../../api/routes.ts'
import { Badge, type Tone } from '../../components/badge.tsx'

const shown: Record<DeletionAnswer['state'], [tone: Tone, text: string, title: string]> = {
  finished: ['good', 'written', 'All users are erased, and all delete calls are written'],
  interrupted: ['bad', 'interrupted', 'Delete calls are missing; resume writes them'],
  cut_off: ['bad', 'cut off', 'It ended before all users were erased; give all of them again'],
}

export function DeletionBadge({ state }: { state: DeletionAnswer['state'] }) {
  const [tone, text, title] = shown[state]
  return <Badge tone={tone} text={text} title={title} />
}
