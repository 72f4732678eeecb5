import { brokerFaults } from './broker-faults.ts'
import { clusterFaults } from './cluster-faults.ts'
import { collectorFaults } from './collector-faults.ts'
import type { Fault } from './fault.ts'
import type { FaultKind } from './fault-kinds.ts'
import { forwarderFaults } from './forwarder-faults.ts'
import { placementFaults } from './placement-faults.ts'
import { receiverFaults } from './receiver-faults.ts'
import { settingsFaults } from './settings-faults.ts'
import { wayFaults } from './way-faults.ts'

export const faults: Record<FaultKind, Fault> = {
  ...forwarderFaults,
  ...collectorFaults,
  ...brokerFaults,
  ...clusterFaults,
  ...placementFaults,
  ...settingsFaults,
  ...receiverFaults,
  ...wayFaults,
}
