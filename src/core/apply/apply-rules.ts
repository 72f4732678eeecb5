import type { Computation, ComputationKind } from '../audience/computations.ts'
import type { SettingsCommand } from '../settings/commands.ts'
import { computationWords } from '../settings/computation-rules.ts'
import { decide } from '../settings/decide.ts'
import type { DeploymentRules } from '../settings/deployment-rules.ts'
import { defaultOptions, editOptions, type OptionsEdit } from '../settings/destination-options.ts'
import type { Decision, SingleEvent } from '../settings/events.ts'
import { fault, type Fault } from '../decision.ts'
import type { Destination, SettingsAggregate } from '../settings/settings.ts'
import { mailAlertOf, mailAlertsIn } from '../operational/mail-alerts.ts'
import { trackingPlanOf, type TrackingPlan } from '../tracking-plan/tracking-plan.ts'
import {
  SettingsDraft,
  headerEditsFor,
  loginEditFor,
  pairFor,
  templateSecretEditsFor,
  type SecretNotes,
  computationLists,
  type ApplyCommand,
  type WantedComputation,
  type WantedDestination,
  type WantedMailAlert,
  type WantedSource,
  type WantedTrackingPlan,
} from './wanted-settings.ts'

/** What applying a file would do, and what it leaves alone. */
export interface ApplyPlan {
  events: SingleEvent[]
  /** What they lead to; with the version of the state before. */
  after: SettingsAggregate
  /** `field` is the place in the file, such as `destinations.2.urls`. */
  faults: Fault[]
  /** Variables that are not set, and whose secrets stay as they are. */
  keptSecrets: string[]
  /** Where the file is to be all that there is: audiences and traits that it does not name, which cannot be disabled. */
  keptComputations: Computation[]
  /** Likewise plans. */
  keptPlans: TrackingPlan[]
}

export function decideAny(
  command: SettingsCommand | ApplyCommand,
  state: SettingsAggregate,
  rules: DeploymentRules,
): Decision {
  if (command.type !== 'apply_settings') return decide(command, state, rules)
  const { events, faults } = planApply(command, state, rules)
  if (faults.length > 0) return { accepted: false, faults }
  // One event, so that all of it counts or nothing.
  return { accepted: true, event: events.length === 0 ? null : { type: 'settings_applied', events } }
}

export function planApply(
  { wanted, prune }: ApplyCommand,
  state: SettingsAggregate,
  rules: DeploymentRules,
): ApplyPlan {
  const steps = new ApplySteps(state, rules)
  // Sources may point to them.
  steps.each('plans', wanted.plans, (place, plan) => steps.plan(place, plan))
  steps.each('sources', wanted.sources, (place, source) => steps.source(place, source))
  steps.each('destinations', wanted.destinations, (place, each) => steps.destination(place, each))
  for (const list of ['audiences', 'traits'] as const)
    steps.each(list, wanted[list], (place, each) => steps.computation(place, computationLists[list], each))
  steps.each('mailAlerts', wanted.mailAlerts, (place, each) => steps.mailAlert(place, each))
  const { events, faults, keptSecrets } = steps
  const keptComputations = prune ? steps.prune(wanted) : []
  const named = new Set(wanted.plans.map(({ id }) => id))
  const keptPlans = prune
    ? [...state.plans.values()].filter(({ id, removed }) => !removed && !named.has(id))
    : []
  const kept = { keptSecrets: [...keptSecrets], keptComputations, keptPlans }
  return { events, after: steps.draft.state, faults, ...kept }
}

class ApplySteps {
  readonly draft: SettingsDraft
  readonly events: SingleEvent[] = []
  readonly faults: Fault[] = []
  readonly keptSecrets = new Set<string>()

  readonly #rules: DeploymentRules

  constructor(state: SettingsAggregate, rules: DeploymentRules) {
    this.draft = new SettingsDraft(state)
    this.#rules = rules
  }

  each<T extends { id: string }>(
    list: string,
    items: readonly T[],
    step: (place: string, item: T) => void,
  ): void {
    const first = new Map<string, number>()
    for (const [index, item] of items.entries()) {
      const place = `${list}.${index}`
      const before = first.get(item.id)
      if (before === undefined) step(place, item)
      else
        this.#refuse(
          place,
          fault('usage', 'id', `${JSON.stringify(item.id)} is also the id of ${list}.${before}`),
        )
      first.set(item.id, before ?? index)
    }
  }

  plan(place: string, wanted: WantedTrackingPlan): void {
    const { id } = wanted
    const current = trackingPlanOf(this.draft.state, id)
    if (!current) {
      this.#step(place, `plan "${id}"`, { type: 'create_plan', ...wanted })
      return
    }
    const edit = changed(wanted, current)
    if (edit) this.#step(place, `plan "${id}"`, { type: 'update_plan', id, ...edit })
  }

  source(place: string, wanted: WantedSource): void {
    const { enabled, spareWriteKey, writeKey, ...fields } = wanted
    const { id } = wanted
    const current = this.draft.state.sources.get(id)
    if (!current) {
      const source = { ...fields, enabled, writeKey: writeKey ?? spareWriteKey }
      this.#step(place, `source "${id}"`, { type: 'create_source', ...source })
      return this.draft.addPlaceholder(source)
    }
    const edit = changed({ ...fields, ...(writeKey !== null && { writeKey }) }, current)
    if (edit) this.#step(place, `source "${id}"`, { type: 'update_source', id, ...edit })
    this.#turn(place, 'source', current, enabled)
  }

  destination(place: string, wanted: WantedDestination): void {
    const { id, name, sourceIds, enabled } = wanted
    const label = `destination "${id}"`
    const urls = wanted.urls.map(({ url }) => url)
    const current = this.draft.state.destinations.get(id)
    const notes: SecretNotes = { faults: [], kept: [] }
    const headers = headerEditsFor(wanted, current, notes)
    const pair = pairFor(wanted, current, notes)
    const login = loginEditFor(wanted, current, notes)
    const templateSecrets = templateSecretEditsFor(wanted, current, notes)
    const options = optionsEditFor(wanted, current)
    for (const each of notes.faults) this.#refuse(place, each, label)
    for (const variable of notes.kept) this.keptSecrets.add(variable)
    if (!current) {
      // Whatever of its secrets there is, is new. The earlier one follows, as for any destination.
      const made = pair && pair.sharedSecret && 'seal' in pair.sharedSecret ? pair.sharedSecret : null
      const isMade = this.#step(place, label, {
        type: 'create_destination',
        ...{
          id,
          name,
          sourceIds,
          urls,
          headers,
          sharedSecret: made,
          login,
          templateSecrets,
          options,
          enabled,
        },
      })
      const sharedSecret = this.draft.state.destinations.get(id)?.sharedSecret ?? null
      if (isMade && pair?.earlierSecret)
        this.#step(place, label, {
          type: 'update_destination',
          id,
          secretPair: { ...pair, sharedSecret },
        })
      return
    }
    const isSameUrls = isSame(
      urls,
      current.urls.map(({ url }) => url),
    )
    const edit = {
      ...(name !== current.name && { name }),
      ...(!isSame(sourceIds, current.sourceIds) && { sourceIds }),
      ...(!isSameUrls && { urls }),
      ...(headers.length > 0 && { headers }),
      ...(pair && { secretPair: pair }),
      ...(login && { login }),
      ...(templateSecrets.length > 0 && { templateSecrets }),
      ...(options && { options }),
    }
    if (Object.keys(edit).length > 0) this.#step(place, label, { type: 'update_destination', id, ...edit })
    this.#turn(place, 'destination', current, enabled)
  }

  computation(place: string, kind: ComputationKind, { id, name, sourceId }: WantedComputation): void {
    const label = `${computationWords[kind]} "${id}"`
    const current = this.draft.state.computations.get(id)
    if (!current || current.kind !== kind || current.deleted) {
      this.#step(place, label, { type: 'create_computation', kind, id, name, sourceId })
      return
    }
    for (const [field, value] of Object.entries({ name, sourceId }))
      if (value !== current[field as 'name' | 'sourceId'])
        this.#refuse(
          place,
          fault('conflict', field, 'it cannot be changed: delete it, and create one with another id'),
          label,
        )
  }

  mailAlert(place: string, wanted: WantedMailAlert): void {
    const { id } = wanted
    const label = `alert "${id}"`
    const current = mailAlertOf(this.draft.state, id)
    const edit = changed(wanted, current ?? {})
    if (!current) this.#step(place, label, { type: 'create_mail_alert', ...wanted })
    else if (edit) this.#step(place, label, { type: 'update_mail_alert', id, ...edit })
  }

  /** Disables what is not named. Gives what cannot be disabled. */
  prune(wanted: ApplyCommand['wanted']): Computation[] {
    const { state } = this.draft
    const named = (list: readonly { id: string }[]) => new Set(list.map(({ id }) => id))
    const [sources, destinations] = [named(wanted.sources), named(wanted.destinations)]
    for (const destination of state.destinations.values())
      if (!destinations.has(destination.id)) this.#turn('', 'destination', destination, false)
    for (const source of state.sources.values())
      if (!sources.has(source.id)) this.#turn('', 'source', source, false)
    const mailAlerts = named(wanted.mailAlerts)
    for (const { id, enabled } of mailAlertsIn(state))
      if (enabled && !mailAlerts.has(id))
        this.#step('', `alert "${id}"`, { type: 'update_mail_alert', id, enabled: false })
    const computations = named([...wanted.audiences, ...wanted.traits])
    return [...state.computations.values()].filter(({ id, deleted }) => !deleted && !computations.has(id))
  }

  #turn(
    place: string,
    one: 'source' | 'destination',
    current: { id: string; enabled: boolean },
    enabled: boolean,
  ): void {
    const { id } = current
    if (current.enabled !== enabled)
      this.#step(place, `${one} "${id}"`, { type: `${enabled ? 'enable' : 'disable'}_${one}`, id })
  }

  /** Whether it was accepted. */
  #step(place: string, label: string, command: SettingsCommand): boolean {
    const decision = decide(command, this.draft.state, this.#rules)
    if (!decision.accepted) {
      for (const each of decision.faults) this.#refuse(place, each, label)
      return false
    }
    // No command of this file leads to anything but a single event.
    const event = decision.event as SingleEvent | null
    if (event === null) return true
    this.events.push(event)
    this.draft.add(event)
    return true
  }

  #refuse(place: string, { code, field, message }: Fault, label?: string): void {
    // Headers stand below their URLs there, and the pair's two secrets are fields of their own.
    const at = field === 'headers' ? 'urls' : field
    this.faults.push(fault(code, `${place}.${at}`, label === undefined ? message : `${label}: ${message}`))
  }
}

/** The options that differ from what there is; what the file does not give is to be the default. */
function optionsEditFor(
  { options }: WantedDestination,
  current: Destination | undefined,
): OptionsEdit | undefined {
  return changed(editOptions(defaultOptions, options), current?.options ?? defaultOptions)
}

/** The fields that differ; undefined where none does. */
function changed<T extends object>(wanted: T, current: object): Partial<T> | undefined {
  const there = current as Record<string, unknown>
  const differing = Object.entries(wanted).filter(([key, value]) => !isSame(value, there[key]))
  return differing.length === 0 ? undefined : (Object.fromEntries(differing) as Partial<T>)
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
