/**
 * The time for whatever waits, paces or measures how long something took: whole milliseconds that begin as epoch time
 * does and go on by the monotonic clock. Whoever sets the system's clock moves no wait by that: an endpoint that asked
 * for two seconds while that clock was an hour ahead would else get nothing for an hour. What others read is told by
 * `Date.now()`.
 */
export const steadyClock = {
  now: (): number => Math.floor(performance.timeOrigin + performance.now()),
}
