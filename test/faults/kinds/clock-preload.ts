// Loaded before a forwarder (NODE_OPTIONS=--import): shifts what its clock says by as many ms as stand in the file
// FAULTS_CLOCK_FILE, now and at each SIGUSR2. The monotonic clock goes on as it is, as on a machine whose time is set.
import { readFileSync } from 'node:fs'

const RealDate = Date
let offsetMs = 0

const read = () => {
  try {
    offsetMs = Number(readFileSync(process.env.FAULTS_CLOCK_FILE!, 'utf8'))
  } catch {
    offsetMs = 0
  }
}
read()
process.on('SIGUSR2', read)

const now = () => RealDate.now() + offsetMs
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
  apply: () => new RealDate(now()).toString(),
  get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
})
