import { globSync } from 'node:fs'
import { parser } from '@prometheus-io/lezer-promql'
import { parse } from 'yaml'
import { readPage, root } from '../docs.ts'

export interface RecordingRule {
  record: string
  expr: string
}
export interface AlertRule {
  alert: string
  expr: string
  for?: string
  labels: Record<string, string>
  annotations: Record<string, string>
}

export const rulesFile = 'ops/prometheus/postrider.rules.yml'

export function readRules(): { recordings: RecordingRule[]; alerts: AlertRule[] } {
  const { groups } = parse(readPage(rulesFile)) as { groups: { rules: (RecordingRule | AlertRule)[] }[] }
  const rules = groups.flatMap((group) => group.rules)
  return {
    recordings: rules.filter((rule) => 'record' in rule),
    alerts: rules.filter((rule) => 'alert' in rule),
  }
}

/** A test of the rules, as far as these tests look at it. */
export interface RuleTest {
  name: string
  promql_expr_test: { expr: string; eval_time: string; exp_samples?: object[] }[]
}

export const ruleTestFiles: readonly string[] = globSync('ops/prometheus/tests/*.yml', { cwd: root }).sort()

export const readRuleTests = (): RuleTest[] =>
  ruleTestFiles.flatMap((file) => (parse(readPage(file)) as { tests: RuleTest[] }).tests)

export interface Matcher {
  label: string
  value: string
}

export interface Selector {
  /** As it is written, without a range. */
  text: string
  metric: string
  matchers: Matcher[]
}

/** The selectors of a PromQL expression. Throws when it cannot be parsed. */
export function selectorsOf(expr: string): Selector[] {
  const found: Selector[] = []
  let current: Selector | null = null
  parser.parse(expr).iterate({
    enter({ name, from, to, type, node }) {
      const text = expr.slice(from, to)
      if (type.isError) throw new Error(`not PromQL at "${expr.slice(from, from + 20)}": ${expr}`)
      if (name === 'VectorSelector') found.push((current = { text, metric: '', matchers: [] }))
      else if (name === 'Identifier' && current) current.metric ||= text
      else if (name === 'UnquotedLabelMatcher' && current) {
        const [label, value] = [node.getChild('LabelName')!, node.getChild('StringLiteral')!]
        current.matchers.push({
          label: expr.slice(label.from, label.to),
          value: expr.slice(value.from + 1, value.to - 1),
        })
      }
    },
  })
  return found
}
