import { may } from '../../app/session.ts'
import { Tabs } from '../../components/views.tsx'

export const SystemTabs = () => (
  <Tabs
    label="Of the system"
    tabs={[
      { page: 'system', text: 'Processes and Kafka' },
      { page: 'history', text: 'Settings history' },
      ...(may('admin') ? [{ page: 'tokens' as const, text: 'Tokens' }] : []),
    ]}
  />
)
