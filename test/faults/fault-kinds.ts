/** What can go wrong in a run, by the names that the report has. */
export const faultKinds = [
  'forwarder-killed',
  'forwarder-stopped',
  'forwarder-frozen',
  'forwarders-rolled',
  'broker-restarted',
  'broker-killed',
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
] as const
export type FaultKind = (typeof faultKinds)[number]

/** After these a delivery may come twice: its owner was lost, or could not commit. */
export const disturbing: ReadonlySet<FaultKind> = new Set(
  faultKinds.filter((kind) => !['settings-changed', 'secret-rotated'].includes(kind)),
)
