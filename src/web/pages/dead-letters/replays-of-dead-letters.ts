import { useLive } from '../../api/live.ts'

/** As many as a page of the API has. */
const limit = 200

/** Replays of dead letters, the oldest first. */
export const useReplays = () => useLive('GET /replays', { query: { of: 'dead_letters', limit } }, 5_000)
