// Loaded first before each test file by scripts/run-test-files.ts. To know which test an error or a hook belongs to, Node's
// runner follows every promise and every other resource of its process, which takes an eighth of the time of those that
// have many. The context of asynchronous calls, which V8 keeps anyhow, tells the same. On a Node whose runner asks
// otherwise, nothing is changed.
import asyncHooks, { AsyncLocalStorage, AsyncResource, type HookCallbacks } from 'node:async_hooks'

/** The test, suite or hook that runs. */
const current = new AsyncLocalStorage<AsyncResource>()
/** The runner's: notes what has this id. */
let note: HookCallbacks['init']

const { createHook, executionAsyncId } = asyncHooks
const { runInAsyncScope } = AsyncResource.prototype

const ofRunner = {
  createHook(callbacks: HookCallbacks) {
    note = callbacks.init
    return { enable() {}, disable() {} }
  },
  executionAsyncId: () => current.getStore()?.asyncId() ?? executionAsyncId(),
}

/** Tests, suites and hooks are resources, and each runs by this. */
AsyncResource.prototype.runInAsyncScope = function (run, thisArg, ...args) {
  if (note === undefined || !('postRun' in this))
    return Reflect.apply(runInAsyncScope, this, [run, thisArg, ...args])
  note(this.asyncId(), 'Test', 0, this)
  const owned = () => current.run(this, () => Reflect.apply(run, thisArg, args))
  return Reflect.apply(runInAsyncScope, this, [owned])
}

// The runner takes them when it is loaded; all others have Node's own.
Object.assign(asyncHooks, ofRunner)
await import('node:test')
Object.assign(asyncHooks, { createHook, executionAsyncId })
