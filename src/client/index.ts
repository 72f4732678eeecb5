export { Analytics } from './analytics.ts'
export type { CloseResult } from './analytics.ts'
export { AnalyticsError, DeliveryError } from './errors.ts'
export type { AnalyticsErrorCode, DeliveryErrorCode, UndeliveredCall } from './errors.ts'
export type { AnalyticsOptions } from './options.ts'
export type {
  AliasCall,
  ClientCallType,
  CommonFields,
  GroupCall,
  Id,
  IdentifyCall,
  Identity,
  PageCall,
  PageProperties,
  ScreenCall,
  TrackCall,
} from './calls.ts'
export type { Batch, RejectedItem, SendResult, Transport } from './transport.ts'
