import { Tabs } from '../../components/tabs.tsx'

export const DeletionTabs = () => (
  <Tabs
    label="Of users"
    tabs={[
      { page: 'deletions', text: 'Deletion requests' },
      { page: 'suppressions', text: 'Suppressed users' },
    ]}
  />
)
