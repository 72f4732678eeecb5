import { useState } from 'preact/hooks'
import { healthSentence, isWell } from '../../../core/statistics/health.ts'
import { useLive } from '../../api/live.ts'
import type { DestinationAnswer, DestinationNowAnswer } from '../../api/routes.ts'
import { query } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Icon } from '../../components/icon.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Note } from '../../components/notices.tsx'
import { HealthBadge } from '../../components/text.tsx'
import { Ago, Since } from '../../components/time.tsx'
import { Loaded, Views } from '../../components/views.tsx'
import { destinationWaitText } from '../../components/wait-text.ts'
import type { PageProps } from '../page-props.ts'
import { Activity } from './activity.tsx'

const views = [
  ['activity', 'Activity'],
  ['attempts', 'Attempts'],
  ['calls', 'Calls'],
  ['settings', 'Settings'],
] as const
type View = (typeof views)[number][0]
type Act = 'test' | 'pause' | 'resume' | 'switch' | 'replay' | 'secret' | 'try_again'

/** With the destination as it was then: a question does not become another one because somebody else was faster. */
interface Asked {
  what: Act
  destination: DestinationAnswer
  /** For If-Match. */
  tag: string | null
}

const attempts = () => import('./attempts.tsx').then(({ Attempts }) => Attempts)
const calls = () => import('./calls.tsx').then(({ DestinationCalls }) => DestinationCalls)
const settings = () => import('./settings/settings.tsx').then(({ Settings }) => Settings)
const replayDialog = () =>
  import('../../components/replay-dialog.tsx').then(({ ReplayDialog }) => ReplayDialog)
const resumeDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ ResumeDialog }) => ResumeDialog)
const secretDialog = () =>
  import('../../components/secret-dialog.tsx').then(({ SecretDialog }) => SecretDialog)
const pauseDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ PauseDialog }) => PauseDialog)
const switchDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ SwitchDialog }) => SwitchDialog)
const tryAgainDialog = () =>
  import('../../components/destination-dialogs.tsx').then(({ TryAgainDialog }) => TryAgainDialog)
const testDialog = () => import('../../components/test-dialog.tsx').then(({ TestDialog }) => TestDialog)

/** One destination: what becomes of its calls, how its URLs answer, and its settings. */
export function Destination({ params }: PageProps) {
  const id = params.id!
  const live = useLive('GET /destinations/{id}', { id }, 10_000)
  const now = useLive('GET /overview/destinations', { query: { id, window: '5m' } }, 10_000)
  const [acting, setActing] = useState<Asked | null>(null)
  const act = (what: Act) => live.data && setActing({ what, destination: live.data, tag: live.tag })
  const asked = query.value.get('view')
  const view = views.find(([each]) => each === asked)?.[0] ?? 'activity'
  const state = now.data?.data[0] ?? null
  const reload = () => {
    live.reload()
    now.reload()
  }
  const close = () => {
    setActing(null)
    reload()
  }
  return (
    <>
      <PageTitle
        title={live.data?.name ?? id}
        above={<a href="/destinations">Destinations</a>}
        beside={state && <HealthBadge health={state.health} />}
        // Those two have a request of their own, beside their filters.
        curl={
          view === 'attempts' || view === 'calls'
            ? undefined
            : { route: 'GET /destinations/{id}', asked: { id } }
        }
        menu={
          live.data?.enabled &&
          may('admin') && (
            <button type="button" class="button button-quiet" onClick={() => act('switch')}>
              Disable
            </button>
          )
        }
      >
        {live.data && <Actions destination={live.data} state={state} act={act} />}
      </PageTitle>
      {(live.data || !live.failure) && (
        <Views label="Views of this destination" name="view" value={view} views={views} />
      )}
      {/* What it says on top, of its health, does not push down what is read already. */}
      <Loaded live={now.data || now.failure ? live : { ...live, data: null }} what={`destination ${id}`}>
        {(destination) => (
          <>
            <StateNote destination={destination} state={state} act={act} />
            <Shown
              view={view}
              destination={destination}
              state={state}
              tag={live.tag}
              act={act}
              reload={reload}
            />
            {acting && <Acting {...acting} close={close} />}
          </>
        )}
      </Loaded>
    </>
  )
}

interface ShownProps {
  view: View
  destination: DestinationAnswer
  /** Null while it is not known. */
  state: DestinationNowAnswer | null
  tag: string | null
  act: (what: Act) => void
  reload: () => void
}

function Shown({ view, destination, state, tag, act, reload }: ShownProps) {
  if (view === 'attempts') return <Lazy load={attempts} what="the attempts" props={{ destination }} />
  if (view === 'calls') return <Lazy load={calls} what="the calls" props={{ destination }} />
  if (view === 'settings')
    return (
      <Lazy
        load={settings}
        what="the settings"
        props={{ destination, tag, rotate: () => act('secret'), reload }}
      />
    )
  return <Activity destination={destination} state={state} />
}

interface ActionsProps {
  destination: DestinationAnswer
  state: DestinationNowAnswer | null
  act: (what: Act) => void
}

function Actions({ destination: { enabled, pause }, act }: ActionsProps) {
  return (
    <>
      {may('operator') && (
        <>
          <button type="button" class="button" onClick={() => act('replay')}>
            Replay …
          </button>
          <button type="button" class="button" onClick={() => act('test')}>
            <Icon name="send" />
            Test
          </button>
          {pause ? (
            <button type="button" class="button button-primary" onClick={() => act('resume')}>
              <Icon name="play" />
              Resume
            </button>
          ) : (
            enabled && (
              <button type="button" class="button" onClick={() => act('pause')}>
                <Icon name="pause" />
                Pause
              </button>
            )
          )}
        </>
      )}
      {!enabled && may('admin') && (
        <button type="button" class="button button-primary" onClick={() => act('switch')}>
          Enable
        </button>
      )}
    </>
  )
}

/** What a reader has to know before anything else. */
function StateNote({ destination: { enabled, pause }, state, act }: ActionsProps) {
  if (!enabled) return <Note>It is disabled: its calls are skipped, and counted as such.</Note>
  if (pause)
    return (
      <Note tone="warn">
        <p>
          Paused <Since at={pause.since} />: its calls are held, and sent afterwards.{' '}
          {pause.until === null ? (
            'It goes on when somebody resumes it.'
          ) : (
            <>
              It goes on by itself <Ago at={pause.until} />.
            </>
          )}
          {pause.keptUntil !== null && (
            <>
              {' '}
              Kafka keeps what is held until then, and begins to delete it <Ago at={pause.keptUntil} />.
            </>
          )}
        </p>
      </Note>
    )
  if (!state) return null
  if (state.health.word !== 'gone') {
    const why = isWell(state.health) ? null : (destinationWaitText(state) ?? healthSentence(state.health))
    return why && <Note tone="warn">{why}</Note>
  }
  return (
    <Note tone="warn">
      <p>All of its URLs answered 410 (Gone). Nothing is sent, and its calls become dead letters.</p>
      {may('admin') && (
        <button type="button" class="button" onClick={() => act('try_again')}>
          Try again
        </button>
      )}
    </Note>
  )
}

function Acting({ what, destination, tag, close }: Asked & { close: () => void }) {
  const { id, name, enabled, sourceIds } = destination
  const of = { id, name, close }
  switch (what) {
    case 'test':
      return <Lazy load={testDialog} what="the test" props={{ id, sourceIds, close }} />
    case 'pause':
      return <Lazy load={pauseDialog} what="the dialog" props={of} />
    case 'resume':
      return <Lazy load={resumeDialog} what="the dialog" props={of} />
    case 'switch':
      return <Lazy load={switchDialog} what="the dialog" props={{ ...of, isEnabled: enabled }} />
    case 'replay':
      return <Lazy load={replayDialog} what="the replay" props={{ id, close }} />
    case 'secret':
      return <Lazy load={secretDialog} what="the dialog" props={{ destination, tag, close }} />
    case 'try_again':
      return <Lazy load={tryAgainDialog} what="the dialog" props={of} />
  }
}
