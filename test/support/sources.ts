import type { Source } from '../../src/core/settings/settings.ts'
import { defaultSourceOptions } from '../../src/core/settings/source-options.ts'

/** A source, as the settings have it: the options that are not given have their defaults. */
export const someSource = (id: string, given: Partial<Source> = {}): Source => ({
  ...{ id, name: id, writeKey: `key-of-${id}`, enabled: true },
  ...defaultSourceOptions,
  ...given,
})
