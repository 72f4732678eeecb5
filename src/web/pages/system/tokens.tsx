import { useRef, useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import type { TokenAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog, Dialog } from '../../components/dialog.tsx'
import { Select, TextField } from '../../components/fields.tsx'
import { Empty, say } from '../../components/notices.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Badge, CopyButton } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { SystemTabs } from './system-tabs.tsx'

type Role = TokenAnswer['role']
type Asked = { what: 'new' } | { what: 'shown'; id: string; token: string } | { what: 'revoke'; id: string }

/** Who may use the console and the API. */
export function Tokens() {
  const [asked, setAsked] = useState<Asked | null>(null)
  const [version, setVersion] = useState(0)
  const changed = () => setVersion((before) => before + 1)
  const close = () => setAsked(null)
  const isAllowed = may('admin')
  return (
    <>
      <PageTitle title="Tokens" curl={isAllowed ? { route: 'GET /tokens' } : undefined}>
        {isAllowed && (
          <button type="button" class="button button-primary" onClick={() => setAsked({ what: 'new' })}>
            New token
          </button>
        )}
      </PageTitle>
      <SystemTabs />
      {isAllowed ? (
        <PagedTable
          route="GET /tokens"
          what="tokens"
          columns={columnsOf((id) => setAsked({ what: 'revoke', id }))}
          keyOf={({ id }) => id}
          version={version}
          empty={{
            title: 'There is no token beside ADMIN_TOKEN.',
            text: 'Make one for each person and program, with the smallest role that will do.',
          }}
        />
      ) : (
        <Empty title="Tokens are shown to holders of the role admin only." />
      )}
      {asked?.what === 'new' && (
        <NewToken
          close={close}
          made={(id, token) => {
            changed()
            setAsked({ what: 'shown', id, token })
          }}
        />
      )}
      {asked?.what === 'shown' && <ShownOnce id={asked.id} token={asked.token} close={close} />}
      {asked?.what === 'revoke' && <Revoke id={asked.id} close={close} done={changed} />}
    </>
  )
}

const columnsOf = (revoke: (id: string) => void): Column<TokenAnswer>[] => [
  { head: 'Name', isName: true, cell: ({ id }) => <span class="id">{id}</span> },
  { head: 'Role', cell: ({ role }) => role },
  { head: 'Only', moves: 'narrow', cell: ({ only }) => only?.join(', ') ?? <span class="faint">all</span> },
  {
    head: 'State',
    cell: ({ revokedAt }) => (
      <Badge tone={revokedAt === null ? 'good' : 'plain'} text={revokedAt === null ? 'works' : 'revoked'} />
    ),
  },
  { head: 'Created', moves: 'narrow', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    head: 'Revoked',
    moves: 'narrow',
    cell: ({ revokedAt }) => (revokedAt === null ? <span class="faint">no</span> : <Ago at={revokedAt} />),
  },
  {
    head: 'Actions',
    cell: ({ id, revokedAt }) => (
      <div class="row-actions">
        {revokedAt === null && (
          <button
            type="button"
            class="button button-small"
            aria-label={`Revoke ${id}`}
            onClick={() => revoke(id)}
          >
            Revoke
          </button>
        )}
      </div>
    ),
  },
]

const roles: readonly (readonly [Role, string])[] = [
  ['reader', 'reader: sees everything but the contents of calls'],
  ['operator', 'operator: also sees contents, tests, pauses, replays'],
  ['admin', 'admin: also changes settings and tokens, and deletes'],
]

function NewToken({ close, made }: { close: () => void; made: (id: string, token: string) => void }) {
  const [id, setId] = useState('')
  const [role, setRole] = useState<Role>('reader')
  const [only, setOnly] = useState('')
  const token = useRef<string | null>(null)
  const create = async (isOpen: () => boolean) => {
    const ids = only.split(/[\s,]+/).filter((each) => each !== '')
    const limits = ids.length > 0 && { only: ids }
    const { data } = await request('POST /tokens', { body: { id, role, ...limits } })
    token.current = data.token
    // Closed too early: it can be shown at no other time.
    if (!isOpen()) made(id, data.token)
  }
  // The dialog closes itself once it has acted; then the token is shown.
  return (
    <ActionDialog
      title="New token"
      action="Create token"
      act={create}
      close={() => (token.current === null ? close() : made(id, token.current))}
    >
      <TextField
        label="Name"
        value={id}
        change={setId}
        autofocus
        hint="Whose it is: the history names it. Up to 64 of a-z, 0-9, “_” and “-”, never used again."
      />
      <Select label="Role" value={role} choices={roles} change={setRole} />
      <TextField
        label="Only (optional)"
        value={only}
        change={setOnly}
        hint="Ids of sources and destinations, such as “shop, crm, agency-*”: it sees and does nothing else. Not for admins."
      />
    </ActionDialog>
  )
}

function ShownOnce({ id, token, close }: { id: string; token: string; close: () => void }) {
  return (
    <Dialog title={`Token “${id}”`} close={close}>
      <p>Copy it now: it is not kept anywhere and cannot be shown again.</p>
      <p class="shown-token">
        <code>{token}</code>
        <CopyButton text={token} what={`token ${id}`} />
      </p>
      <div class="dialog-buttons">
        <button type="button" class="button button-primary" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  )
}

function Revoke({ id, close, done }: { id: string; close: () => void; done: () => void }) {
  const revoke = async () => {
    await request('POST /tokens/{id}/revoke', { id })
    say(`Token ${id} is revoked`)
    done()
  }
  return (
    <ActionDialog
      title={`Revoke token “${id}”?`}
      action={`Revoke ${id}`}
      isDestructive
      act={revoke}
      close={close}
    >
      <p>Every console refuses it from its next request on. This cannot be undone.</p>
    </ActionDialog>
  )
}
