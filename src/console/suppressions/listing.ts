import { everySource } from '../../core/suppression/suppressions.ts'
import type { SuppressionPorts } from './suppression-records.ts'
import type { ListedSuppressions, SuppressionItem } from './suppressions.ts'

type Placed = SuppressionItem & { offset: number }

/** What is in force, from this place of the topic on, in the order in which it began. */
async function* suppressionsFrom(
  ports: SuppressionPorts,
  from: number,
  wanted: string | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<Placed, void, undefined> {
  const known = await ports.known(signal)
  if (wanted !== null) {
    await ports.settings.catchUp()
    const all = [everySource, ...ports.settings.state.sources.keys()]
    if (!all.some((sourceId) => known.has(sourceId, wanted))) return
  }
  for await (const { sourceId, userId, offset, appendedAt } of ports.read(from, signal)) {
    if (wanted !== null && userId !== wanted) continue
    // Compaction comes later: until then what has ended, or begun again, lies there too.
    if (!known.isNewest(sourceId, userId, offset)) continue
    yield { userId, sourceId: sourceId === everySource ? null : sourceId, since: appendedAt, offset }
  }
}

export async function* allSuppressions(
  ports: SuppressionPorts,
  userId: string | null,
  signal?: AbortSignal,
): AsyncGenerator<SuppressionItem, void, undefined> {
  for await (const { offset: _offset, ...item } of suppressionsFrom(ports, 0, userId, signal)) yield item
}

export async function pageOfSuppressions(
  ports: SuppressionPorts,
  from: number,
  limit: number,
  userId: string | null,
  signal?: AbortSignal,
): Promise<ListedSuppressions> {
  const items: SuppressionItem[] = []
  for await (const { offset, ...item } of suppressionsFrom(ports, from, userId, signal)) {
    if (items.length === limit) return { items, next: offset }
    items.push(item)
  }
  return { items, next: null }
}
