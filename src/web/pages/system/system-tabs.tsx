import { may } from '../../app/session.ts'
import { Tabs } from '../../components/views.tsx'

export const SystemTabs = () => (
  <Tabs
    label="Of the system"
    tabs={[
      { page: 'system', text: 'Processes and Kafka' },
      { page: 'history', text: 'Settings history' },
      { page: 'settingsFile', text: 'Settings as code' },
      { page: 'alerts', text: 'Alerts' },
      ...(may('admin') ? [{ page: 'tokens' as const, text: 'Tokens' }] : []),
    ]}
  />
)
