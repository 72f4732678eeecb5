import type { PlacedRange, ReplayTotals } from './replay-job.ts'

export type ReplayCommand =
  | {
      type: 'start_replay'
      /** New; of a pause's replay `heldReplayId`. */
      id: string
      terms: PlacedRange
      pauseId: string | null
      keptSince: number | null
      at: number
    }
  | { type: 'pause_replay' | 'resume_replay'; id: string; at: number }
  | { type: 'cancel_replay' | 'finish_replay'; id: string; at: number; totals: ReplayTotals | null }
