import type { Mutation } from '../../scripts/mutations/mutation.ts'

const inKafka = (name: string) => ({ file: 'pipeline/settings/tracking-plans.test.ts', name })
const blocked =
  'where a source blocks, violating calls are dead letters that arrive once the plan is right, by replay and no other way'

/** What calls should look like. */
export const plans: readonly Mutation[] = [
  {
    id: 'blocked-calls-delivered',
    file: 'src/core/tracking-plan/plan-check.ts',
    find: "if (mode !== 'block' || violations.length === 0) return false",
    replace: 'return mode.length === violations.length && unknownEvents.length === 0',
    test: inKafka(blocked),
  },
  {
    id: 'a-replay-goes-around-the-plan',
    file: 'src/operators/replay/chosen-calls.ts',
    find: 'if (facts.isBlocked(place)) return []',
    replace: '',
    test: inKafka(blocked),
  },
  {
    id: 'the-last-violations-unreported',
    file: 'src/forwarder/forwarder.ts',
    find: 'plans.report(true)',
    replace: 'plans.report(false)',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'violations are reported as they are found, and the last ones before the end',
    },
  },
  {
    id: 'escaped-keys-read-where-they-lie',
    file: 'src/adapters/json-schema/fitting-text.ts',
    find: 'fittingEnd(rule, text, 0) === text.length && !hasEscapedKey(text)',
    replace: 'fittingEnd(rule, text, 0) === text.length && hasEscapedKey !== null',
    test: {
      file: 'adapters/json-schema/fitting-text.test.ts',
      name: 'a key in escapes, and one that has none of its own spelling, is left to the parser',
    },
  },
  {
    id: 'a-missing-key-fits',
    file: 'src/adapters/json-schema/fitting-text.ts',
    find: 'return missing === 0 && text.charCodeAt(at) === closeBrace',
    replace: 'return missing >= 0 && text.charCodeAt(at) === closeBrace',
    test: {
      file: 'adapters/json-schema/fitting-text.test.ts',
      name: 'what fits where it lies fits when it is parsed, however it is written',
    },
  },
  {
    id: 'names-of-senders-in-violations',
    file: 'src/adapters/json-schema/compile-schema.ts',
    find: "(names.has(step) ? step : '*')",
    replace: '(names.size < 0 ? null! : step)',
    test: {
      file: 'adapters/json-schema/compile-schema.test.ts',
      name: 'a violation names properties of the schema and its keyword, and nothing of the call',
    },
  },
  {
    id: 'one-pattern-for-all',
    file: 'src/adapters/json-schema/schema-rules.ts',
    find: 'toString: () => pattern',
    replace: "toString: () => 'pattern'",
    test: {
      file: 'adapters/json-schema/compile-schema.test.ts',
      name: 'each pattern is its own, and one of a choice that none fits is one violation',
    },
  },
  {
    id: 'plans-of-sources-removed',
    file: 'src/core/tracking-plan/plan-rules.ts',
    find: 'if (pointing.length === 0)',
    replace: 'if (pointing.length >= 0)',
    test: {
      file: 'core/tracking-plan/plan-rules.test.ts',
      name: 'a plan that sources point to is not removed, and the refusal names them',
    },
  },
  {
    id: 'calls-that-a-plan-blocks-wait-for-endpoints',
    file: 'src/forwarder/plan/call-planner.ts',
    find: '    if (this.#parts.plans.findingsOf(call, place)?.isBlocked) return []\n',
    replace: '',
    test: {
      file: 'forwarder/plan/call-planner.test.ts',
      name: 'a call that will go nowhere waits for no endpoint: blocked by a plan, of a suppressed user, or not valid',
    },
  },
]
