// What the commands of plans have beside their operations.
import { Option, type Command } from 'commander'
import { stringify } from 'yaml'
import { schemaRefusal } from '../../adapters/json-schema/compile-schema.ts'
import { usageError } from '../../cli/flags.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable } from '../../cli/terminal.ts'
import { readYamlFile, textOf } from '../../cli/yaml-file.ts'
import { unknownEventsChoices } from '../../core/tracking-plan/tracking-plan.ts'
import { planCreate, schemaFaults, type PlanView } from './plans.ts'
import type { DraftView, ViolationView } from './operations.ts'

interface PlanFlags {
  id?: string
  name?: string
  unknownEvents?: (typeof unknownEventsChoices)[number]
  file?: string
}

/** In a file everything can be left out that flags give, and an update can be given the file of the creation. */
const planFile = planCreate.extend({ unknownEvents: planCreate.shape.unknownEvents.unwrap() }).partial()

const addPlanFlags = (command: Command) =>
  command
    .option('--file <file>', 'the plan as YAML or JSON; - for stdin')
    .option('--name <name>', 'for people')
    .addOption(
      new Option(
        '--unknown-events <choice>',
        'what is done about track events that it does not name',
      ).choices(unknownEventsChoices),
    )

/** Flags beat the file. Every schema is checked here, for a file has lines that faults can name. */
async function given({ file: name, ...flags }: PlanFlags) {
  const chosen = Object.fromEntries(
    (['id', 'name', 'unknownEvents'] as const).flatMap((field) =>
      flags[field] === undefined ? [] : [[field, flags[field]]],
    ),
  )
  if (name === undefined) return chosen
  const read = readYamlFile(await textOf(name, 'a plan'), name === '-' ? 'stdin' : name, planFile)
  const faults = schemaFaults(read.file.events ?? {}, schemaRefusal)
  if (faults.length > 0) throw read.refuse(faults)
  return { ...read.file, ...chosen }
}

const create: CommandShape = {
  fields: [],
  addFlags: (command) =>
    void addPlanFlags(
      command.option('--id <id>', '1-64 of a-z, 0-9, "_" and "-"; that of the file unless it is given'),
    ),
  async read(options) {
    const body = await given(options)
    if (body.id === undefined) throw usageError('the plan has no id: give --id, or `id` in the file')
    if (!('events' in body)) throw usageError('the plan has no events: give --file')
    return () => ({ body: { name: body.id, ...body } })
  },
}

const update: CommandShape = {
  fields: [],
  addFlags: (command) => void addPlanFlags(command),
  async read(options, [id]) {
    const { id: inFile, ...body } = await given(options)
    if (inFile !== undefined && inFile !== id)
      throw usageError(`the file is of plan ${JSON.stringify(inFile)}, not of ${JSON.stringify(id)}`)
    return () => ({ body })
  },
}

const list: CommandShape = {
  none: 'no plans; `postrider plans create --help` shows how to add one',
  row: {
    headings: ['ID', 'NAME', 'EVENTS', 'UNKNOWN EVENTS', 'SOURCES'],
    of: ({ id, name, events, unknownEvents, sourceIds }: PlanView) => [
      id,
      name,
      Object.keys(events).length,
      unknownEvents,
      sourceIds.join(', ') || '-',
    ],
  },
}

const violations: CommandShape = {
  none: 'no violations',
  row: {
    headings: ['COUNT', 'SOURCE', 'PLAN', 'EVENT', 'PATH', 'RULE', 'MODE', 'LAST SEEN', 'LAST CALL'],
    of: ({ count, sourceId, planId, event, path, rule, mode, lastAt, messageIds }: ViolationView) => [
      count,
      sourceId,
      planId,
      printable(event),
      path || '-',
      rule,
      mode,
      lastAt,
      printable(messageIds[0] ?? '-'),
    ],
  },
}

/** A file for `plans create`. */
const draft: CommandShape = {
  text({ plan, calls, omitted, looked, total, lookedSince }: DraftView) {
    const all =
      looked < total
        ? `the newest ${looked} of ${total} records: in all since ${lookedSince}, and in some before`
        : `all ${total} records since ${lookedSince}`
    const left = omitted === 0 ? '' : `; ${omitted} calls are not described`
    const head = `# Drafted from ${calls} calls, found in ${all}${left}. Look it through, and create it:\n`
    const next = `# postrider plans create --file plan.yml; then postrider sources update ${plan.id} --plan ${plan.id}\n`
    return `${head}${next}${stringify(plan, { lineWidth: 0 })}`.trimEnd()
  },
}

export const planShapes: Readonly<Record<string, CommandShape>> = {
  listPlans: list,
  createPlan: create,
  updatePlan: update,
  listPlanViolations: violations,
  draftPlan: draft,
}
