import type { Live } from '../api/live.ts'
import type { ListPage, ReplayAnswer } from '../api/routes.ts'
import { Lazy } from './lazy.tsx'

const replays = () => import('./replays.tsx').then(({ Replays }) => Replays)

/** As `Replays`, whose script is loaded where there is one: on most pages there is none. */
export const ReplaysIfAny = (props: { live: Live<ListPage<ReplayAnswer>>; max: number }) =>
  props.live.data !== null && props.live.data.data.length > 0 ? (
    <Lazy load={replays} what="the replays" props={props} />
  ) : null
