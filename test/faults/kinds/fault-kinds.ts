/** What can go wrong in a run, by the names that the report has. */
export const faultKinds = [
  'forwarder-killed',
  'forwarder-stopped',
  'forwarder-frozen',
  'forwarders-rolled',
  'collector-killed',
  'collector-stopped',
  'console-killed',
  'broker-restarted',
  'broker-killed',
  'brokers-rolled',
  'brokers-rolled-fast',
  'leader-killed',
  'broker-frozen',
  'brokers-gone',
  'coordinator-restarted',
  'coordinator-moved',
  'controller-restarted',
  'leaders-elected',
  'partitions-reassigned',
  'broker-unreachable',
  'disk-full',
  'connections-cut',
  'network-away',
  'network-stalled',
  'network-slow',
  'registry-away',
  'clock-skewed',
  'clock-jumped',
  'settings-changed',
  'secret-rotated',
  'partitions-added',
  'tiers-changed',
  'name-moved',
  'tokens-away',
  'proxy-away',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** These need more than one broker. */
export const clusterKinds: ReadonlySet<FaultKind> = new Set([
  ...(['brokers-rolled', 'brokers-rolled-fast', 'leader-killed', 'broker-frozen', 'brokers-gone'] as const),
  ...(['coordinator-restarted', 'coordinator-moved', 'controller-restarted'] as const),
  ...(['leaders-elected', 'partitions-reassigned', 'broker-unreachable'] as const),
])

/** These are about one receiver: no other one can have anything of them. */
export const ofOneReceiver: ReadonlySet<FaultKind> = new Set([
  ...(['name-moved', 'tokens-away', 'proxy-away'] as const),
])

/** After these a delivery may come twice: its owner was lost, or could not commit. */
export const disturbing: ReadonlySet<FaultKind> = new Set(
  faultKinds.filter(
    (kind) => !ofOneReceiver.has(kind) && kind !== 'settings-changed' && kind !== 'secret-rotated',
  ),
)
