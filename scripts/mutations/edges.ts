import type { Mutation } from './mutation.ts'

const noneShutOut =
  'No source, and nobody without one, keeps the room of a collector from others: by not reading, stalling, dripping or flooding'
const bounded =
  'What is long is refused before it is looked into, and who tries tokens or drips costs next to nothing'

/** What strangers and senders can do to our HTTP servers. */
export const edges: readonly Mutation[] = [
  {
    name: 'one source takes the whole room',
    promise: noneShutOut,
    file: 'src/collector/room.ts',
    find: 'return share.calls + count <= this.#limits.calls - this.#calls - count',
    replace: 'return this.#calls + count <= this.#limits.calls',
    test: { file: 'collector/collector.test.ts', name: 'no source can take the room that others need' },
  },
  {
    name: 'calls that were not taken count',
    promise: noneShutOut,
    file: 'src/collector/collector.ts',
    find: 'hold.addCalls(added)',
    replace: 'hold.addCalls(count)',
    test: {
      file: 'collector/collector.test.ts',
      name: 'only calls that were taken count, and only for as long as they wait',
    },
  },
  {
    name: 'strangers share the room of known sources',
    promise: noneShutOut,
    file: 'src/collector/room.ts',
    find: 'return bytes <= share.maxBytes && bytes <=',
    replace: 'return bytes <=',
    test: {
      file: 'collector/room.test.ts',
      name: 'a source alone gets half of the room, and all whose source is not known an eighth of its bytes',
    },
  },
  {
    name: 'no limit on the rate of a source',
    promise: noneShutOut,
    file: 'src/collector/collector.ts',
    find: 'this.#rates.count(source.id, count)',
    replace: '',
    test: {
      file: 'collector/collector.test.ts',
      name: 'a source beyond its rate is refused until the rate has worked it off, and no other is',
    },
  },
  {
    name: 'room kept until the sender goes away',
    promise: noneShutOut,
    file: 'src/adapters/http/collector-server.ts',
    find: '      hold.release()',
    replace: "      request.raw.socket.once('close', () => hold.release())",
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a sender that takes no answer keeps no room, and is cut off in time',
    },
  },
  {
    name: 'an answer waits for its reader for ever',
    promise: noneShutOut,
    file: 'src/adapters/http/collector-server.ts',
    find: 'const timer = setTimeout(() => response.destroy(), withinMs).unref()',
    replace: 'const timer = setTimeout(() => {}, withinMs).unref()',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a sender that takes no answer keeps no room, and is cut off in time',
    },
  },
  {
    name: 'bodies may drip',
    promise: noneShutOut,
    file: 'src/adapters/http/body.ts',
    find: 'patience.wait(() => settle(tooSlow))',
    replace: 'patience.stop()',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a body that drips is cut off after its grace, and one that comes steadily is not',
    },
  },
  {
    name: 'lists looked into before their length',
    promise: bounded,
    file: 'src/console/api/check.ts',
    find: 'const tooLong = lengthFaults(schema, value)',
    replace: 'const tooLong = lengthFaults(schema, null)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'lists that are longer than they may be are refused before anybody looks into them',
    },
  },
  {
    name: 'parameters looked for in the prototype',
    promise: 'Every wrong field is named',
    file: 'src/console/api/check.ts',
    find: 'Object.hasOwn(schema.shape, name)',
    replace: 'name in schema.shape',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'parameters with the names of a prototype’s are unknown ones',
    },
  },
  {
    name: 'bugs in requests with a body not logged',
    promise: bounded,
    file: 'src/adapters/http/console-server.ts',
    find: 'if (!answer && !reply.raw.destroyed)',
    replace: 'if (!answer && !request.raw.destroyed)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'a bug is logged, whether the request had a body or not',
    },
  },
  {
    name: 'wrong tokens answered at once',
    promise: bounded,
    file: 'src/adapters/http/refused-tokens.ts',
    find: 'await sleep(delayMs)',
    replace: 'await sleep(0)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'many wrong tokens get few lines of the log, and wait for their answers',
    },
  },
  {
    name: 'lists may drip',
    promise: bounded,
    file: 'src/adapters/http/console-bodies.ts',
    find: 'patience.wait(() => expired.reject(drips(pace.perSecond)))',
    replace: 'patience.wait(() => {})',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'a list that drips is refused after its grace, and one that comes steadily is not',
    },
  },
]
