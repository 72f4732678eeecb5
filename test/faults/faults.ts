import { brokerFaults } from './broker-faults.ts'
import type { Fault } from './fault.ts'
import type { FaultKind } from './fault-kinds.ts'
import { forwarderFaults } from './forwarder-faults.ts'
import { settingsFaults } from './settings-faults.ts'

export const faults: Record<FaultKind, Fault> = { ...forwarderFaults, ...brokerFaults, ...settingsFaults }
