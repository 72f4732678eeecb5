import type { OperationalEventName } from './operational-event.ts'

/** Trouble and its end: nobody is called at night for a replay that has finished. */
export const incidentEvents: readonly OperationalEventName[] = [
  'Endpoint Down',
  'Endpoint Recovered',
  'Endpoint Gone',
  'Deliveries Failed',
  'Audit Failed',
  'Records Lost',
  'Problem Ended',
]

/** Services that operational events can be sent to, and what each needs to know. */
export const alertKinds = {
  slack: {
    name: 'Slack',
    needs: 'url',
    label: 'URL of the incoming webhook',
    hint: 'Slack: “Incoming Webhooks” of an app, “Add New Webhook”. It begins with https://hooks.slack.com/services/.',
  },
  teams: {
    name: 'Microsoft Teams',
    needs: 'url',
    label: 'URL of the workflow',
    hint: 'Teams: “Workflows” of a channel, “Post to a channel when a webhook request is received”.',
  },
  pagerduty: {
    name: 'PagerDuty',
    needs: 'key',
    label: 'Integration key',
    hint: 'PagerDuty: “Integrations” of a service, “Events API V2”. Only trouble and its end are sent.',
  },
} as const satisfies Record<string, { name: string; needs: 'url' | 'key'; label: string; hint: string }>

export type AlertKind = keyof typeof alertKinds
export const alertKindNames = Object.keys(alertKinds) as [AlertKind, ...AlertKind[]]
