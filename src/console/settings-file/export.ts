import type { Computation } from '../../core/audience/computations.ts'
import { defaultOptions } from '../../core/settings/destination-options.ts'
import {
  sourceDefaults,
  type Destination,
  type SettingsState,
  type Source,
} from '../../core/settings/settings.ts'
import { referenceTo, secretPrefix, type GivenSettingsFile } from './file-schema.ts'

type InFile<K extends keyof GivenSettingsFile> = NonNullable<GivenSettingsFile[K]>[number]

/**
 * The settings as a file that leads to them. What has its default is left out, and secrets are references to variables
 * whose names are made of where they are used; no two have one name.
 */
export function exportedSettings({
  sources,
  destinations,
  computations,
}: SettingsState): Required<GivenSettingsFile> {
  const variables = new VariableNames()
  const listed = (kind: Computation['kind']) =>
    [...computations.values()]
      .filter((each) => each.kind === kind && !each.deleted)
      .map(({ id, name, sourceId }) => ({ id, name, sourceId }))
  return {
    sources: [...sources.values()].map(exportedSource),
    destinations: [...destinations.values()].map((each) => exportedDestination(each, variables)),
    audiences: listed('audience'),
    traits: listed('trait'),
  }
}

const exportedSource = ({ id, name, writeKey, enabled, ...rest }: Source): InFile<'sources'> => ({
  ...{ id, name, writeKey, enabled },
  ...differing(rest, sourceDefaults),
})

function exportedDestination(destination: Destination, variables: VariableNames): InFile<'destinations'> {
  const { id, name, enabled, sourceIds, urls, sharedSecret, earlierSecret, options } = destination
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
