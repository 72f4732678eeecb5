// By itself: sources and statistics both show it, and one of them imports the other.
import { z } from 'zod'

const count = z.number().int()

/** What collectors took and refused of a source. */
export const collectedShape = {
  accepted: count,
  duplicate: count,
  refused: count,
  flagged: count.describe('Of those accepted: flagged as a bot’s.'),
}
