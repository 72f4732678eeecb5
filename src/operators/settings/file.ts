import { z } from 'zod'
import { planApply, type ApplyPlan } from '../../core/apply/apply-rules.ts'
import type { ApplyCommand, GivenSecret } from '../../core/apply/wanted-settings.ts'
import type { Computation } from '../../core/audience/computations.ts'
import { defaultOptions } from '../../core/settings/destination-options.ts'
import { loginSecrets } from '../../core/settings/login.ts'
import {
  loginNames,
  type CertificateFacts,
  type Destination,
  type LoginName,
  type SettingsAggregate,
  type SettingsState,
  type Source,
} from '../../core/settings/settings.ts'
import { mailAlertsIn } from '../../core/operational/mail-alerts.ts'
import { exportedMailAlert } from '../alerts/mail-alerts.ts'
import { defaultSourceOptions } from '../../core/settings/source-options.ts'
import type { Fault } from '../../core/decision.ts'
import type { TrackingPlan } from '../../core/tracking-plan/tracking-plan.ts'
import {
  wantedSettings,
  type SettingsFile,
  referenceTo,
  secretPrefix,
  type GivenSettingsFile,
} from './file-schema.ts'
import { readLogin } from './login.ts'
import { schemaFaults, type SchemaRefusal } from '../plans/plans.ts'
import { changedSetting, changedSettingSchema, type ChangedSetting } from './history.ts'
import { sealerFor, type Sealer, type Secrets } from './secrets.ts'
import { SettingsChangedFirst, SettingsRefused, type SettingsWriter } from './writer.ts'

export const applyReportSchema = z
  .object({
    dryRun: z.boolean(),
    version: z.number().int().describe('Of the settings that the difference is to.'),
    applied: z.boolean().describe('False in a dry run, and where there was nothing to change.'),
    changed: z.array(changedSettingSchema).describe('The difference: what was, or would be, changed.'),
    keptSecrets: z
      .array(z.string())
      .describe('Variables that are not set, so that the secrets in their places stay.'),
    keptComputations: z
      .array(z.object({ kind: z.enum(['audience', 'trait']), id: z.string() }))
      .describe(
        'With prune: audiences and traits that the file does not have. They cannot be disabled, and stay.',
      ),
    keptPlans: z.array(z.string()).describe('With prune: plans that the file does not have. They stay.'),
  })
  .meta({ id: 'ApplyReport' })

export type ApplyReport = z.output<typeof applyReportSchema>

export interface ApplyOptions {
  dryRun: boolean
  prune: boolean
  /** The version that the caller has seen; the one that there is now unless it is given. */
  expectedVersion?: number | undefined
  /** As SealingOptions has it. */
  anyKey?: boolean | undefined
  /** Learns of the difference before anything is written. */
  onDifference?: ((report: ApplyReport) => void) | undefined
}

interface ApplyPorts {
  schemaRefusal: SchemaRefusal
  settings: SettingsWriter
  secrets: Secrets
  /** Epoch ms. */
  now?: () => number
}

/**
 * Makes the settings what the file says, as one change that counts as a whole or not at all. Throws SettingsRefused with
 * every fault and its place in the file; SettingsChangedFirst where somebody else changed the settings since they were
 * looked at; `secrets_key`.
 *
 * @param variables by their names; one that is not set is absent
 */
export async function applySettings(
  file: SettingsFile,
  variables: ReadonlyMap<string, string>,
  { dryRun, prune, expectedVersion, anyKey, onDifference }: ApplyOptions,
  { settings, secrets, schemaRefusal, now = Date.now }: ApplyPorts,
): Promise<ApplyReport> {
  const { state } = settings
  const { version } = state
  if (expectedVersion !== undefined && expectedVersion !== version)
    throw new SettingsChangedFirst(version, settings.authorAfter(expectedVersion))
  const sealer = sealerFor(settings, secrets, { destinationId: '', anyKey })
  const loginFaults: Fault[] = []
  const wanted = wantedSettings(file, {
    secret(variable) {
      const text = variables.get(variable)
      return text === undefined ? null : givenSecret(text, secrets, sealer)
    },
    login(names, { id, place }) {
      const texts = eachLogin((name) => names[name] && variables.get(names[name]))
      const there = state.destinations.get(id)?.login
      const read = readLogin(texts, now(), (name, text) => {
        const sealed = there?.[name]
        return Boolean(sealed) && givenSecret(text, secrets, sealer).equals(sealed!)
      })
      for (const { code, field, message } of read.faults)
        loginFaults.push({ code, field: `${place}.${field}`, message })
      return eachLogin((name) => {
        const [text, certificates] = [read.texts[name], read.certificates[name]]
        return typeof text !== 'string' ? null : givenSecret(text, secrets, sealer, certificates)
      })
    },
  })
  const command: ApplyCommand = { type: 'apply_settings', wanted, prune }
  const plan = planApply(command, state, settings.rules)
  const faults = [...plansFaults(file, schemaRefusal), ...loginFaults, ...plan.faults]
  if (faults.length > 0) throw new SettingsRefused(faults)
  const report = reportOf(plan, state, dryRun)
  onDifference?.(report)
  if (dryRun || plan.events.length === 0) return report
  await settings.perform(command, { expectedVersion: version, check: sealer.check })
  return { ...report, applied: true }
}

const plansFaults = ({ plans }: SettingsFile, refusal: SchemaRefusal): Fault[] =>
  plans.flatMap(({ events }, index) => schemaFaults(events, refusal, `plans.${index}.events`))

const eachLogin = <T>(of: (name: LoginName) => T): Record<LoginName, T> =>
  Object.fromEntries(loginNames.map((name) => [name, of(name)])) as Record<LoginName, T>

function givenSecret(
  text: string,
  secrets: Secrets,
  sealer: Sealer,
  certificates?: CertificateFacts[],
): GivenSecret {
  return {
    equals: ({ keyId, fingerprint, bound }) =>
      bound === true && secrets.keyIds.includes(keyId) && secrets.fingerprint(text, keyId) === fingerprint,
    make: () => ({ ...sealer.newSecret(text), ...(certificates && { certificates }) }),
  }
}

function reportOf(
  { after, keptSecrets, keptComputations, keptPlans }: ApplyPlan,
  before: SettingsAggregate,
  dryRun: boolean,
): ApplyReport {
  const changed: ChangedSetting[] = []
  for (const part of ['plans', 'sources', 'destinations', 'computations', 'mailAlerts'] as const)
    for (const [id, value] of after[part]) {
      const was = before[part].get(id)
      const found =
        was === value ? null : changedSetting({ of: part, id, before: was, after: value }, 'admin')
      if (found) changed.push(found)
    }
  return {
    dryRun,
    version: before.version,
    applied: false,
    changed,
    keptSecrets,
    keptComputations: keptComputations.map(({ kind, id }) => ({ kind, id })),
    keptPlans: keptPlans.map(({ id }) => id),
  }
}

type InFile<K extends keyof GivenSettingsFile> = NonNullable<GivenSettingsFile[K]>[number]

/**
 * The settings as a file that leads to them. What has its default is left out, and secrets are references to variables
 * whose names are made of where they are used; no two have one name.
 */
export function exportedSettings(state: SettingsState): Required<GivenSettingsFile> {
  const { plans, sources, destinations, computations } = state
  const variables = new VariableNames()
  const listed = (kind: Computation['kind']) =>
    [...computations.values()]
      .filter((each) => each.kind === kind && !each.deleted)
      .map(({ id, name, sourceId }) => ({ id, name, sourceId }))
  return {
    plans: [...plans.values()].filter(({ removed }) => !removed).map(exportedPlan),
    sources: [...sources.values()].map(exportedSource),
    destinations: [...destinations.values()].map((each) => exportedDestination(each, variables)),
    audiences: listed('audience'),
    traits: listed('trait'),
    mailAlerts: mailAlertsIn(state).map(exportedMailAlert),
  }
}

const exportedPlan = ({ id, name, events, unknownEvents }: TrackingPlan): InFile<'plans'> => ({
  ...{ id, name, events },
  ...differing({ unknownEvents }, { unknownEvents: 'allow' }),
})

const exportedSource = ({ id, name, writeKey, enabled, ...options }: Source): InFile<'sources'> => ({
  ...{ id, name, writeKey, enabled },
  ...differing(options, defaultSourceOptions),
})

function exportedDestination(destination: Destination, variables: VariableNames): InFile<'destinations'> {
  const { id, name, enabled, sourceIds, urls, sharedSecret, earlierSecret, templateSecrets, options } =
    destination
  const login = loginSecrets(destination.login).map(({ name: part }) => [
    part,
    referenceTo(variables.nameFor(id, variableParts[part])),
  ])
  return {
    ...{ id, name, enabled, sourceIds },
    urls: urls.map(({ url, headers }, index) => ({
      url,
      ...(headers.length > 0 && {
        headers: Object.fromEntries(
          headers.map((header) => [
            header.name,
            referenceTo(variables.nameFor(id, String(index + 1), header.name)),
          ]),
        ),
      }),
    })),
    ...(sharedSecret && { sharedSecret: referenceTo(variables.nameFor(id)) }),
    ...(earlierSecret && { earlierSecret: referenceTo(variables.nameFor(id, 'earlier')) }),
    ...(Object.fromEntries(login) as { [N in LoginName]?: string }),
    ...(templateSecrets.length > 0 && {
      templateSecrets: Object.fromEntries(
        templateSecrets.map((secret) => [
          secret.name,
          referenceTo(variables.nameFor(id, 'template', secret.name)),
        ]),
      ),
    }),
    ...differing(options, defaultOptions),
  }
}

/** The fields that do not have their default. */
function differing<T extends object>(value: T, defaults: object): Partial<T> {
  const known = defaults as Record<string, unknown>
  const fields = Object.entries(value).filter(
    ([field, each]) => JSON.stringify(each) !== JSON.stringify(known[field]),
  )
  return Object.fromEntries(fields) as Partial<T>
}

/** What their variables are called by. */
const variableParts: Readonly<Record<LoginName, string>> = {
  clientCert: 'client_cert',
  clientKey: 'client_key',
  ca: 'ca',
  oauthClientSecret: 'oauth',
}

class VariableNames {
  readonly #given = new Set<string>()

  /** `POSTRIDER_SECRET_CRM_1_AUTHORIZATION`, for the first URL. Two ids may differ in their punctuation only: then the later one has a number. */
  nameFor(...parts: string[]): string {
    const plain = `${secretPrefix}${parts
      .join('_')
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')}`.slice(0, 120)
    let name = plain
    for (let number = 2; this.#given.has(name); number++) name = `${plain}_${number}`
    this.#given.add(name)
    return name
  }
}
